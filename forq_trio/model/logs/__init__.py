"""The two logs: lifecycle events, and the history of finished messages."""
