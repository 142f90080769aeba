"""Which engine a database URL means. The only module that names concrete engines."""

from forq_trio.errors import StorageOpenError
from forq_trio.storage.engine import Engine, EngineSettings

SQLITE_PREFIX = "sqlite:///"
MEMORY_URL = "memory:"


def open_engine(url: str, settings: EngineSettings, durability: str) -> Engine:
    """Open the engine for `sqlite:///<path>` (three slashes, then the path: a fourth makes it absolute) or `memory:`.

    Blocks on the disk. Raises StorageOpenError, with one sentence that says why.
    """
    if url.startswith(SQLITE_PREFIX) and len(url) > len(SQLITE_PREFIX):
        from forq_trio.storage.sqlite.engine import SqliteEngine

        return SqliteEngine(url.removeprefix(SQLITE_PREFIX), settings, durability)
    if url == MEMORY_URL:
        from forq_trio.storage.memory import MemoryEngine

        return MemoryEngine(settings)
    raise StorageOpenError(f"{url!r} is not a database URL; use sqlite:///<path> or memory:")
