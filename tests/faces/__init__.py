"""What the queue promises, told once and asked of every face: the Broker and HTTP, on every engine."""
