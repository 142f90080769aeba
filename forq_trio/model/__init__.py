"""The nouns and verbs of the queue as plain values. These modules import nothing of the package but each other."""
