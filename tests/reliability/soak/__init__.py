"""The soak of mixed load (bench/soak): its verdict on made-up seconds, and a few real ones."""
