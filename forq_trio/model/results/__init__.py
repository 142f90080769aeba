"""Results of messages: what a consumer gives with its ack, and how a sender waits for it."""
