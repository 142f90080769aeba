"""Writes a file's dirty pages back to the disk little by little, so that syncs of other files need not wait for them.

A sync of 8 MiB hands the disk everything at once, and the sync of the next commit, of a few KiB, waits behind it: for 4
to 6 milliseconds instead of 0.3. Here the file is written back range by range, each after the previous one is on the
disk. This is not a sync: the data may still be in the disk's cache, and the file's length is not written. A sync has
to follow, but it is short.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from functools import cache

from forq_trio.model import limits

_WAIT_BEFORE, _WRITE, _WAIT_AFTER = 1, 2, 4
_CANNOT = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.ESPIPE, errno.EOPNOTSUPP)


@cache
def _sync_file_range() -> Callable[..., int] | None:
    """Linux's sync_file_range; None on other systems."""
    try:
        function = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    function.restype = ctypes.c_int
    called: Callable[..., int] = function
    return called


def write_back(descriptor: int) -> None:
    """Bring the file's changed pages to the disk, range by range. Does nothing on systems that cannot do that.

    Waits for the disk. Raises OSError if writing fails, because the sync that follows might not report that again.
    """
    sync_range = _sync_file_range()
    if sync_range is None:
        return
    size = os.fstat(descriptor).st_size
    step = max(limits.WRITE_BACK_BYTES, -(-size // limits.WRITE_BACK_RANGES_MAX))
    for start in range(0, size, step):
        if sync_range(descriptor, start, step, _WAIT_BEFORE | _WRITE | _WAIT_AFTER):
            number = ctypes.get_errno()
            if number in _CANNOT:
                return
            raise OSError(number, os.strerror(number))
