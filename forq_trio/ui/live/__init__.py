"""Live updates: open pages get changes at most once a second."""
