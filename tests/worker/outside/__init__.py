"""Handlers that start processes and open connections: in real time, unlike the tests beside this folder."""
