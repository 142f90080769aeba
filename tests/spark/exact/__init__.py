"""Exactly once, shown: real servers and real drivers that are killed, and what came out counted and compared."""
