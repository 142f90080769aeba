"""Consumers of pipelines, which read a queue in numbered leases."""
