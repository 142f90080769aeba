"""Tests of the HTTP clients, against the real server in a thread of this process."""
