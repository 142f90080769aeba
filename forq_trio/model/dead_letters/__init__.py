"""Dead letters: searches, and redrives."""
