"""forq-trio: a durable, instant, self-hosted message queue on one writer actor."""
