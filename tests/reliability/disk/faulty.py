"""A disk that fails where a test says, below SQLite: the system calls of its own VFS for Unix are replaced.

So what an error number means is decided by SQLite, as on a real disk, and what it ignores stays ignored. Only a sync
cannot be replaced there. To fail one, or to be told of it, a test asks for a VFS of ours (`with_syncs`), which raises
in Python whatever goes wrong below it, also what SQLite ignores; so then nothing but syncs is counted.

Operations are counted while the disk is armed; the n-th one fails, or that one and all after it until the disk is
healed. Nothing of an operation that fails is done, except that a failed write may leave half of what it was to write.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

import apsw

_BASE = "unix"
_libc = ctypes.CDLL(None, use_errno=True)


class Kind(Enum):
    """The error number of operations that fail."""

    FULL = errno.ENOSPC
    QUOTA = errno.EDQUOT
    IO = errno.EIO


class Fault(NamedTuple):
    """at: which operation fails, the first being 1. lasting: so do all after it that can fail like this."""

    at: int
    kind: Kind
    lasting: bool


class Operation(NamedTuple):
    """write, sync, truncate, size, read, open or delete; and the end of the file's name."""

    name: str
    file: str


NEEDS_ROOM = frozenset({"write", "truncate", "open"})
"""What fails on a full disk."""

_ENDINGS = ("-wal", "-shm", "-journal", ".partial", ".db")


class FaultyDisk:
    """seen: the operations since it was armed; failed: those that it let fail.

    with_syncs: see above. read_only: the name of a file that can be opened for reading only. is_full: asked before an
    operation that needs room; True lets it fail for want of it. on_sync: called for each sync, in its thread.
    """

    def __init__(self, *, with_syncs: bool = False) -> None:
        self.with_syncs = with_syncs
        self.fault: Fault | None = None
        self.seen: list[Operation] = []
        self.failed: list[Operation] = []
        self.read_only: str | None = None
        self.is_full: Callable[[Operation], bool] = lambda _: False
        self.on_sync: Callable[[], None] = lambda: None
        self._armed = False

    @contextmanager
    def in_use(self) -> Iterator["FaultyDisk"]:
        """Have all connections of this process use this disk."""
        vfs = _SyncingVFS(self) if self.with_syncs else apsw.VFS("faulty", _BASE)
        self._vfs = vfs
        self._replacements = {
            name: ctypes.CFUNCTYPE(*types, use_errno=True)(call) for name, types, call in self._calls()
        }
        self._replace_calls()
        try:
            yield self
        finally:
            self._restore_calls()
            vfs.unregister()

    def arm(self, fault: Fault | None) -> None:
        """Count operations from now on, and let the one fail that `fault` names (None: none)."""
        self.fault, self.seen, self.failed, self._armed = fault, [], [], True

    def heal(self) -> None:
        """Let nothing fail and count nothing any more."""
        self._armed = False

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """Look at files in the body with the system's own calls, which are much quicker, and without being counted."""
        armed, self._armed = self._armed, False
        self._restore_calls()
        try:
            yield
        finally:
            self._replace_calls()
            self._armed = armed

    def _replace_calls(self) -> None:
        """For all connections of the process, open ones included."""
        for name, call in self._replacements.items():
            self._vfs.xSetSystemCall(name, ctypes.cast(call, ctypes.c_void_p).value)

    def _restore_calls(self) -> None:
        for name in self._replacements:
            self._vfs.xSetSystemCall(name, 0)

    def failure(self, name: str, path: str) -> int:
        """Count an operation, and say with which error number it is to fail; 0 to let it pass."""
        operation = Operation(name, next((end for end in _ENDINGS if path.endswith(end)), "other"))
        if name in NEEDS_ROOM and self.is_full(operation):
            return errno.ENOSPC
        if not self._armed or (name == "sync") != self.with_syncs:
            return 0
        self.seen.append(operation)
        fault, number = self.fault, len(self.seen)
        if fault is None or number < fault.at or (number > fault.at and not fault.lasting):
            return 0
        if fault.kind is not Kind.IO and name not in NEEDS_ROOM:
            return 0
        self.failed.append(operation)
        return fault.kind.value

    def _calls(self) -> Iterator[tuple[str, tuple[Any, ...], Callable[..., int]]]:
        """Name, types and replacement of the system calls; a name that SQLite does not call is of no effect."""
        fd, size, offset, pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p

        def refused(name: str, path: str | int) -> bool:
            number = self.failure(name, path if isinstance(path, str) else _path_of(path))
            ctypes.set_errno(number)
            return number != 0

        def write(file: int, data: int, length: int, at: int) -> int:
            if refused("write", file):
                number = ctypes.get_errno()
                _libc.pwrite64(file, pointer(data), size(length // 2), offset(at))
                ctypes.set_errno(number)
                return -1
            return int(_libc.pwrite64(file, pointer(data), size(length), offset(at)))

        def read(file: int, data: int, length: int, at: int) -> int:
            if refused("read", file):
                return -1
            return int(_libc.pread64(file, pointer(data), size(length), offset(at)))

        def truncate(file: int, length: int) -> int:
            return -1 if refused("truncate", file) else int(_libc.ftruncate64(file, offset(length)))

        def fstat(file: int, buffer: int) -> int:
            return -1 if refused("size", file) else int(_libc.fstat64(file, pointer(buffer)))

        def open_(path: bytes, flags: int, mode: int) -> int:
            name = os.path.basename(os.fsdecode(path))
            if name == self.read_only and flags & os.O_ACCMODE != os.O_RDONLY:
                ctypes.set_errno(errno.EROFS)
                return -1
            creates = bool(flags & os.O_CREAT) and not os.path.exists(path)
            if (creates or not flags & os.O_CREAT) and refused("open", os.fsdecode(path)):
                return -1
            return int(_libc.open64(path, flags, mode))

        def unlink(path: bytes) -> int:
            return -1 if refused("delete", os.fsdecode(path)) else int(_libc.unlink(path))

        result = ctypes.c_ssize_t
        yield "pwrite64", (result, fd, pointer, size, offset), write
        yield "pread64", (result, fd, pointer, size, offset), read
        yield "ftruncate", (fd, fd, offset), truncate
        yield "fstat", (fd, fd, pointer), fstat
        yield "open", (fd, ctypes.c_char_p, fd, fd), open_
        yield "unlink", (fd, ctypes.c_char_p), unlink


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


class _SyncingVFS(apsw.VFS):
    def __init__(self, disk: FaultyDisk) -> None:
        super().__init__("faulty", _BASE, makedefault=True)
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "_SyncingFile":
        return _SyncingFile(name, flags, self._disk)


class _SyncingFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], disk: FaultyDisk) -> None:
        super().__init__(_BASE, name, flags)
        self._path = str(name.filename() if isinstance(name, apsw.URIFilename) else name)
        self._disk = disk

    def xSync(self, flags: int) -> None:
        if self._disk.failure("sync", self._path):
            error = apsw.IOError("the sync failed")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error
        self._disk.on_sync()
