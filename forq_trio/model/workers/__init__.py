"""Workers that make themselves known."""
