"""The nouns and verbs of the queue as plain values: they import nothing of the package but each other."""
