"""Benchmarks of forq-trio: a load generator, the scenarios, their peers, and the reports. Run `python -m bench`."""
