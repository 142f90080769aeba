"""Empty databases of SQLite for tests that do not test how one is made: a copy, in half the time."""

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from forq_trio.storage.sqlite.files.open import open_database


def empty_file(directory: Path) -> Path:
    """A database in this directory, as a first start leaves it; of each directory one."""
    path = directory / "forq.db"
    if not path.exists():
        path.write_bytes(_content())
    return path


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "forq.db")
        with closing(open_database(str(path), "none")):
            pass
        return path.read_bytes()
