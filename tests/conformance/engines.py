"""The engines on which tests of this directory run."""

import pytest

THREE = "three on postgres"
SQL = "sqlite", "postgres", THREE
on_sql = pytest.mark.parametrize("make_engine", SQL, indirect=True)
"""Marks tests of how much a batch does and what it leaves to the next one: the model's batches leave nothing."""
