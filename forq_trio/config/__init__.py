"""The settings of `forq serve`: where they come from, what they mean, and how they are told."""
