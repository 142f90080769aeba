"""Opens the engine of a database URL. The only module that names concrete engines."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import NO_DURABILITY, Engine, EngineSettings
from forq_trio.storage.migrate import Migrated

SQLITE_PREFIX = "sqlite:///"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")
MEMORY_URL = "memory:"


def open_engine(url: str, settings: EngineSettings, durability: str) -> Engine:
    """Open the engine of `sqlite:///<path>` (three slashes, then the path: a fourth makes it absolute), of `memory:` or
    of `postgresql://<user>@<host>/<database>`.

    `memory:` is a temporary database: it is removed when it is closed, or when the next one is opened after its process
    was killed, and ignores `durability`. Blocks on the disk. Raises StorageOpenError, with one sentence
    that says why.
    """
    if url.startswith(SQLITE_PREFIX) and len(url) > len(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.engine import SqliteEngine

        return SqliteEngine(url.removeprefix(SQLITE_PREFIX), settings, durability)
    if url == MEMORY_URL:
        return _open_temporary(settings)
    with _postgres(url):
        from forq_trio.storage.postgres.engine import PostgresEngine
    return PostgresEngine(url, settings, durability)


def migrate(url: str) -> Migrated:
    """Bring the schema of a database up to date, and make it in PostgreSQL. Blocks. Raises StorageOpenError."""
    if url.startswith(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.files.open import migrate_file

        return migrate_file(url.removeprefix(SQLITE_PREFIX))
    with _postgres(url):
        from forq_trio.storage.postgres.open import migrate as migrate_postgres
    return migrate_postgres(url)


@contextmanager
def _postgres(url: str) -> Iterator[None]:
    """Import in the body what opens this URL. Raises StorageOpenError."""
    if not url.startswith(POSTGRES_PREFIXES):
        shown = url.partition("://")[0] + "://…" if "@" in url else url
        raise StorageOpenError(
            f"{shown!r} is not a database URL; use sqlite:///<path>, memory: or postgresql://…"
        )
    try:
        yield
    except ImportError as error:
        raise StorageOpenError(f"PostgreSQL needs `pip install 'forq-trio[postgres]'` ({error})") from None


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
