"""Syncs files to the disk and reserves space for them, on each operating system.

macOS has neither fdatasync nor posix_fallocate. Its fsync leaves data in the cache of the drive, which a power cut
empties; F_FULLFSYNC empties that cache first. SQLite is told to use it as well (`PRAGMA fullfsync`).
"""

import fcntl
import os
from contextlib import suppress

from forq_trio.model.limits import MIB


def sync_data(descriptor: int) -> None:
    """Wait until the content of a file and its length are on the disk. Raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    else:
        sync_all(descriptor)


def sync_all(descriptor: int) -> None:
    """Wait until a file with all its metadata, or the names in a directory, are on the disk. Raises OSError."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        with suppress(OSError):  # some file systems have only fsync, which reports what else is wrong
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def allocate(descriptor: int, begin: int, size: int) -> None:
    """Append `size` bytes to a file that is `begin` bytes long, so that later writes find space. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, begin, size)
        return
    end = begin + size
    while begin < end:
        begin += os.pwrite(descriptor, bytes(min(MIB, end - begin)), begin)
