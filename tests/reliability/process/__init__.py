"""Real server processes: killed, stopped, and refused a start."""
