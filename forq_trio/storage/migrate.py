"""Schema migrations for every SQL engine: numbered files, applied in order, never changed, never undone.

A file `0027_labels.sql` is version 27. A database records which migrations were applied to it, with the SHA-256 of
their texts, so that a program refuses a database of another version before it changes anything. This module says which
migrations are missing; the engine executes them.

The first file is the baseline, with all tables of the first release. It replaced the earlier migrations, numbered from
1. It has the number of the last of them and names its checksum (`-- same as:`), because both lead to the same tables.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from forq_trio.model.errors import StorageOpenError

_FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_SAME_AS = re.compile(r"^-- same as: ([0-9a-f]{64})$", re.MULTILINE)


class Applied(NamedTuple):
    """A migration that a database records as applied; ordered by version."""

    version: int
    name: str
    checksum: str


class Migrated(NamedTuple):
    """The result of bringing a schema up to date.

    name: of the database, without a password. before, now: the versions of its schema; 0 if it had none of ours.
    """

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

    def is_same_as(self, applied: Applied) -> bool:
        """Whether a database to which `applied` was applied has the tables of this migration."""
        return applied.checksum in (self.checksum, *_SAME_AS.findall(self.sql))


def version_of(applied: Sequence[Applied]) -> int:
    """The version of a database to which these migrations were applied; 0 for none."""
    return applied[-1].version if applied else 0


def load(package: str) -> tuple[Migration, ...]:
    """The migrations in the folder `migrations` of a package, in order.

    Raises ValueError for a misnamed file or a missing version: a mistake in the program.
    """
    found = []
    for file in files(package).joinpath("migrations").iterdir():
        match = _FILE_NAME.fullmatch(file.name)
        if match is None:
            raise ValueError(f"{file.name} is not named like a migration")
        found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    found.sort()
    if [migration.version for migration in found] != [found[0].version + n for n in range(len(found))]:
        raise ValueError(f"the migrations of {package} are not numbered one after the other")
    return tuple(found)


def pending(path: str, known: Sequence[Migration], applied: Sequence[Applied]) -> Sequence[Migration]:
    """The known migrations that are still to be applied to the database at `path`, in order.

    Raises StorageOpenError unless the applied ones are the first of the known ones, unchanged. Migrations from before
    the baseline are part of it.
    """
    baseline, latest, found = known[0].version, known[-1].version, version_of(applied)
    if 0 < found < baseline:
        raise StorageOpenError(
            f"{path} was written by an unreleased version of forq-trio, at version {found} of its tables; "
            f"releases begin with {baseline}: have the last unreleased version bring it there, or use another database"
        )
    since = [had for had in applied if had.version >= baseline]
    for expected, had in enumerate(since, start=baseline):
        if had.version != expected:
            raise StorageOpenError(f"{path} has had migration {had.version} but not migration {expected}")
        if expected > latest:
            raise StorageOpenError(
                f"{path} was written by a newer version of forq-trio: it has had migration {had.version}, "
                f"this version knows {latest}; use the newer version, or another database"
            )
        if not known[expected - baseline].is_same_as(had):
            raise StorageOpenError(
                f"{path} has had a migration {had.version} ({had.name}) that differs from the one known here"
            )
    return known[len(since) :]
