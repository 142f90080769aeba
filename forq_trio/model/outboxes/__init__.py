"""Outboxes, and messages from them that were set aside."""
