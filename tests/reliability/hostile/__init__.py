"""Clients that mean no good, or die at the worst moment."""
