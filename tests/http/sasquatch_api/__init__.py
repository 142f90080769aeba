"""Sasquatch's dialect (contract S)."""
