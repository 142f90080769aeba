"""What happens in the queues over time, and how well they are: for the admin UI, the API and /metrics."""
