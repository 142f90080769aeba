"""Opens the engine of a database URL. The only module that names concrete engines."""

from contextlib import ExitStack

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import NO_DURABILITY, Engine, EngineSettings

SQLITE_PREFIX = "sqlite:///"
MEMORY_URL = "memory:"


def open_engine(url: str, settings: EngineSettings, durability: str) -> Engine:
    """Open the engine for `sqlite:///<path>` (three slashes, then the path: a fourth makes it absolute) or `memory:`.

    `memory:` is a temporary database: it is removed when it is closed, or when the next one is opened after its process
    was killed, and ignores `durability`. Blocks on the disk. Raises StorageOpenError, with one sentence
    that says why.
    """
    if url.startswith(SQLITE_PREFIX) and len(url) > len(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.engine import SqliteEngine

        return SqliteEngine(url.removeprefix(SQLITE_PREFIX), settings, durability)
    if url == MEMORY_URL:
        return _open_temporary(settings)
    raise StorageOpenError(f"{url!r} is not a database URL; use sqlite:///<path> or memory:")


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
