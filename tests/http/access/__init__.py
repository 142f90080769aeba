"""Access tokens: who may do what, for how long, and how that is kept."""
