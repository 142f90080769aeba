"""Where the servers of these tests keep their messages."""

from pathlib import Path

import pytest

ENGINES = ["sqlite", pytest.param("postgres", marks=pytest.mark.tier2)]


@pytest.fixture(params=ENGINES)
def place(request, tmp_path) -> Path | str:
    """A file, or the URL of a PostgreSQL database: what `real_server` takes. Nothing is in it."""
    return tmp_path / "forq.db" if request.param == "sqlite" else request.getfixturevalue("database")
