"""What is measured: servers started here, somebody else's by URL, and the yardsticks."""
