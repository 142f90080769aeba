"""Which engine a database URL means. The only module that names concrete engines."""

from collections.abc import Iterator
from contextlib import contextmanager

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.engine import Engine, EngineSettings

SQLITE_PREFIX = "sqlite:///"
MEMORY_URL = "memory:"
KEEP_NOTHING = "none"
"""The durability of a database that is thrown away with its process."""


def open_engine(url: str, settings: EngineSettings, durability: str) -> Engine:
    """Open the engine for `sqlite:///<path>` (three slashes, then the path: a fourth makes it absolute) or `memory:`.

    Blocks on the disk. Raises StorageOpenError, with one sentence that says why.
    """
    if url.startswith(SQLITE_PREFIX) and len(url) > len(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.engine import SqliteEngine

        return SqliteEngine(url.removeprefix(SQLITE_PREFIX), settings, durability)
    if url == MEMORY_URL:
        from forq_trio.storage.memory.engine import MemoryEngine

        return MemoryEngine(settings)
    raise StorageOpenError(f"{url!r} is not a database URL; use sqlite:///<path> or memory:")


@contextmanager
def temporary_database() -> Iterator[str]:
    """The URL of a database of its own kind for one process: it is removed when the body ends, or at the next start.

    To be opened with the durability KEEP_NOTHING. Blocks on the disk a little. Raises StorageOpenError.
    """
    from forq_trio.storage.sqlite.files import temporary

    with temporary.temporary_database() as path:
        yield f"{SQLITE_PREFIX}{path}"
