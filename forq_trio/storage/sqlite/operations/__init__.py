"""What the SQLite engine does for each kind of command: one operation a file, functions over a Transaction."""
