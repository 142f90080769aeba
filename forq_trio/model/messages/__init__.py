"""Messages: sent, received, settled, looked up."""
