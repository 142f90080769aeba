"""The questions that are measured, one a file."""
