"""Schedules, which send messages at their times."""
