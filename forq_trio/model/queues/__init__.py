"""Queues: settings, names, tables they are bound to."""
