"""Schema migrations for every SQL engine: numbered files, applied in order, never changed, never undone.

A file `0007_schedules.sql` is version 7. A database records the migrations that were applied to it with the SHA-256 of
their texts, so that a program refuses a database of another version before it changes anything. The engine executes
migrations; this module says which ones are missing.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from forq_trio.model.errors import StorageOpenError

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class Applied(NamedTuple):
    """A migration that a database records as applied; ordered by version."""

    version: int
    name: str
    checksum: str


class Migrated(NamedTuple):
    """name: of the database, without a password. before, now: the versions of its schema; 0 for none of ours."""

    name: str
    before: int
    now: int


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the SQL text, in hex."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load(package: str) -> tuple[Migration, ...]:
    """The migrations in the folder `migrations` of a package, in order.

    Raises ValueError when a file is misnamed or the versions are not 1, 2, 3 …: a mistake in the program.
    """
    found = []
    for file in files(package).joinpath("migrations").iterdir():
        match = _FILE_NAME.fullmatch(file.name)
        if match is None:
            raise ValueError(f"{file.name} is not named like a migration")
        found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    found.sort()
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered 1, 2, 3 …")
    return tuple(found)


def pending(path: str, known: Sequence[Migration], applied: Sequence[Applied]) -> Sequence[Migration]:
    """The known migrations that were not applied to the database at `path`, in order.

    Raises StorageOpenError unless those that were applied are the first of the known ones, unchanged.
    """
    for expected, had in enumerate(applied, start=1):
        if had.version != expected:
            raise StorageOpenError(f"{path} has had migration {had.version} but not migration {expected}")
        if expected > len(known):
            raise StorageOpenError(
                f"{path} was written by a newer version of forq-trio: it has had migration {had.version}, "
                f"this version knows {len(known)}; use the newer version, or another database"
            )
        if had.checksum != known[expected - 1].checksum:
            raise StorageOpenError(
                f"{path} has had a migration {had.version} ({had.name}) that differs from the one known here"
            )
    return known[len(applied) :]
