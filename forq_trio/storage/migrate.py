"""Schema migrations for every SQL engine: numbered files, applied in order, never changed, never undone.

A file `0007_schedules.sql` is version 7. What a database has had applied is kept in it with the SHA-256 of
the text, so that a database and a program that do not belong together are told apart before either is harmed.
How a migration is executed is the engine's business; this module says which ones are due.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from forq_trio.model.errors import StorageOpenError

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class Applied(NamedTuple):
    """What a database remembers of a migration it had; ordered by version."""

    version: int
    name: str
    checksum: str


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


def pending(place: str, known: Sequence[Migration], applied: Sequence[Applied]) -> Sequence[Migration]:
    """The known migrations that the database at `place` has not had, in order.

    Raises StorageOpenError when what it had is not a beginning of what is known, unchanged.
    """
    for expected, had in enumerate(applied, start=1):
        if had.version != expected:
            raise StorageOpenError(f"{place} has had migration {had.version} but not migration {expected}")
        if expected > len(known):
            raise StorageOpenError(
                f"{place} was written by a newer version of forq-trio: it has had migration {had.version}, "
                f"this version knows {len(known)}"
            )
        if had.checksum != known[expected - 1].checksum:
            raise StorageOpenError(
                f"{place} has had a migration {had.version} ({had.name}) that differs from the one known here"
            )
    return known[len(applied) :]
