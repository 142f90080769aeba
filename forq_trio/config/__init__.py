"""The settings of `forq serve`: their declarations, sources, validation and reports."""
