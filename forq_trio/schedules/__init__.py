"""The times of schedules: plain functions over values, without clock or database."""
