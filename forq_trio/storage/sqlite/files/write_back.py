"""Writes a file's dirty pages back to the disk little by little: otherwise syncs of other files wait for them.

A sync of 8 MiB hands the disk all of it at once, and the next commit's own sync, of some KiB, waits behind it: 4 to 6
milliseconds instead of 0.3. Here the file is written back range by range, each after the one before is on the disk.
This is not a sync (the disk may still have it in its cache, and the file's length is not written): a sync has to
follow, which is short then.
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
    """Linux's sync_file_range; None where there is none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).sync_file_range
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    function.restype = ctypes.c_int
    called: Callable[..., int] = function
    return called


def write_back(descriptor: int) -> None:
    """Bring the file's changed pages to the disk, range by range. Does nothing if the system cannot do that.

    Waits for the disk. Raises OSError when it fails to write: the sync that follows might not report that again.
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
