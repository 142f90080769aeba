"""What brings a file to the disk, and gives it space there, on each system.

macOS has neither fdatasync nor posix_fallocate, and its fsync leaves what was written in the cache of the drive itself,
which a power cut empties. F_FULLFSYNC does not; SQLite is told to use it where it syncs (`PRAGMA fullfsync`).
"""

import fcntl
import os
from contextlib import suppress

from forq_trio.model.limits import MIB


def sync_data(descriptor: int) -> None:
    """Wait until a file's content is on the disk, and its length."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        sync_all(descriptor)


def sync_all(descriptor: int) -> None:
    """Wait until a file is on the disk, or the names in a directory."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        with suppress(OSError):  # some file systems have only fsync, which reports what else is wrong
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def allocate(descriptor: int, begin: int, size: int) -> None:
    """Give a file `size` more bytes from `begin` on, its end, so that a later write finds space. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, begin, size)
        return
    end = begin + size
    while begin < end:
        begin += os.pwrite(descriptor, bytes(min(MIB, end - begin)), begin)
