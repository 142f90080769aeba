"""Live updates: pages that are open get what has changed, at most once a second."""
