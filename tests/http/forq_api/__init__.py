"""Forq's API and what surrounds it, without sockets (contract F1-F6, F8-F11)."""
