"""Rates of the queues over time, and their health: for the admin UI, the API and /metrics."""
