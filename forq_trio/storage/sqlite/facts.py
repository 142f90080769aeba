"""What a database file is and how much disk it uses: a few system calls, no query."""

import os

import apsw

from forq_trio.model import limits
from forq_trio.storage.engine import NO_DURABILITY, EngineFacts
from forq_trio.storage.sqlite.files.open import LockedFile
from forq_trio.storage.sqlite.log import SqliteLog, free_pages


def facts_of(database: LockedFile, log: SqliteLog, durability: str) -> EngineFacts:
    page_bytes, free_page_bytes = free_pages(database.descriptor)
    free_bytes, total_bytes = _disk(os.path.dirname(database.real_path))
    return EngineFacts(
        name="SQLite",
        version=apsw.sqlite_lib_version(),
        durability=durability,
        path=None if durability == NO_DURABILITY else database.real_path,
        file_bytes=os.fstat(database.descriptor).st_size,
        free_page_bytes=free_page_bytes,
        gives_pages_back=database.gives_pages_back,
        log_bytes=log.pages() * page_bytes,
        log_file_bytes=log.space().file_bytes,
        log_bytes_max=limits.CHECKPOINT_PAUSE_PAGES * page_bytes,
        disk_free_bytes=free_bytes,
        disk_total_bytes=total_bytes,
    )


def _disk(directory: str) -> tuple[int | None, int | None]:
    """The free bytes for users other than root, and the total; (None, None) if the directory is gone."""
    try:
        disk = os.statvfs(directory)
    except OSError:
        return None, None
    return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
