"""Message batches: messages that belong together, whose end the server tells with a message."""
