"""Opens the engine of a database URL. The only module that names concrete engines."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from forq_trio.model.errors import StorageOpenError
from forq_trio.model.extras import how_to_install
from forq_trio.model.server.database_urls import NO_OTHER_URLS, OtherUrls, shown
from forq_trio.storage.engine import NO_DURABILITY, Engine, EngineSettings
from forq_trio.storage.migrate import Migrated
from forq_trio.storage.move import MoveReport, Progress, Side, Table, tables_of
from forq_trio.storage.move import move as move_all

if TYPE_CHECKING:
    from forq_trio.storage.postgres.move import PgSide
    from forq_trio.storage.sqlite.files.move import SqliteSide

SQLITE_PREFIX = "sqlite:///"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")
_FILE_PREFIX = "sqlite:"
MEMORY_URL = "memory:"


def open_engine(
    url: str, settings: EngineSettings, durability: str, others: OtherUrls = NO_OTHER_URLS
) -> Engine:
    """Open the engine of `sqlite:///<path>` (three slashes, then the path: a fourth makes it absolute), of `memory:` or
    of `postgresql://<user>@<host>/<database>`.

    `memory:` is a temporary database, which ignores `durability`. It is removed when it is closed, or, if its process
    was killed, when the next one is opened. others: only for PostgreSQL, refused for the rest. Blocks on the disk.
    Raises StorageOpenError, with one sentence that says why.
    """
    if others != NO_OTHER_URLS and not url.startswith(POSTGRES_PREFIXES):
        raise StorageOpenError("a URL to listen at, or of a replica, is for a database of PostgreSQL")
    if url.startswith(SQLITE_PREFIX) and len(url) > len(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.engine import SqliteEngine

        return SqliteEngine(url.removeprefix(SQLITE_PREFIX), settings, durability)
    if url == MEMORY_URL:
        return _open_temporary(settings)
    with _postgres(url):
        from forq_trio.storage.postgres.engine import PostgresEngine
    return PostgresEngine(url, settings, durability, others)


def migrate(url: str) -> Migrated:
    """Bring the schema of a database up to date, or create it in PostgreSQL. Blocks. Raises StorageOpenError."""
    if url.startswith(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.files.open import migrate_file

        return migrate_file(url.removeprefix(SQLITE_PREFIX))
    with _postgres(url):
        from forq_trio.storage.postgres.open import migrate as migrate_postgres
    return migrate_postgres(url)


def move(source: str, target: str, progress: Progress) -> MoveReport:
    """Move everything in a database into an empty database of the other engine (storage/move.py).

    A URL is `sqlite:<path>`, or has a form that `open_engine` takes. Blocks. Raises StorageOpenError while nothing was
    changed, MoveFailed later. Exceptions of `progress` are passed on.
    """
    with opened_for_move(source, target) as (here, there, tables):
        return MoveReport(here.name, there.name, move_all(here, there, tables, progress), here.left())


@contextmanager
def opened_for_move(source: str, target: str) -> Iterator[tuple[Side, Side, Sequence[Table]]]:
    """The two sides of a move, locked, and the tables to move. Raises StorageOpenError."""
    into_file = target.startswith(_FILE_PREFIX)
    if into_file == source.startswith(_FILE_PREFIX):
        raise StorageOpenError("one of the two databases is sqlite:<path>, the other one postgresql://…")
    with ExitStack() as opened:
        if into_file:
            postgres = opened.enter_context(closing(_postgres_side(source, target=False)))
            file = opened.enter_context(closing(_file_side(target, target=True)))
            yield postgres, file, tables_of(file.tables(), postgres.columns())
        else:
            file = opened.enter_context(closing(_file_side(source, target=False)))
            postgres = opened.enter_context(closing(_postgres_side(target, target=True)))
            yield file, postgres, tables_of(file.tables(), postgres.columns())


def _file_side(url: str, *, target: bool) -> "SqliteSide":
    from forq_trio.storage.sqlite.files.move import SqliteSide

    return SqliteSide(url.removeprefix(_FILE_PREFIX).removeprefix("///"), target=target)


def _postgres_side(url: str, *, target: bool) -> "PgSide":
    with _postgres(url):
        from forq_trio.storage.postgres.move import PgSide
    return PgSide(url, target=target)


@contextmanager
def _postgres(url: str) -> Iterator[None]:
    """Import in the body what PostgreSQL needs. Raises StorageOpenError if that is missing, or for another URL."""
    if not url.startswith(POSTGRES_PREFIXES):
        raise StorageOpenError(
            f"{shown(url)!r} is not a database URL; use sqlite:///<path>, memory: or postgresql://…"
        )
    try:
        yield
    except ImportError as error:
        raise StorageOpenError(f"PostgreSQL needs {how_to_install('postgres')} ({error})") from None


def _open_temporary(settings: EngineSettings) -> Engine:
    from forq_trio.storage.sqlite.engine import SqliteEngine
    from forq_trio.storage.sqlite.files.temporary import temporary_database

    resources = ExitStack()
    path = resources.enter_context(temporary_database())
    try:
        return SqliteEngine(path, settings, NO_DURABILITY, on_closed=resources.close)
    except BaseException:
        resources.close()
        raise
