"""`forq demo`: a server with a small shop behind it, so that everything can be seen at work."""
