"""What happened in the queues, as tables and as one page: from a frame of lifecycle events."""
