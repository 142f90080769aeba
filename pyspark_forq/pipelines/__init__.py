"""Pipelines on Spark over what happened in the queues: archive, compact, report, replay and load."""
