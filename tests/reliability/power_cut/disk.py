"""A disk that remembers what was synced: a VFS of SQLite that notes every write, truncation, sync and deletion.

Files are really written, through SQLite's own VFS, so the engine under test runs as it always does. From the notes
`Disk.after_cut` makes the files that a machine could find after its power failed right after a given operation:

- what a sync of a file covered is there, whole;
- of what was written to it since, every sector by itself is there or not, in no order, also the halves of one write;
- a truncation since has happened or not; nor has a deletion until its directory was synced, which SQLite does when it
  deletes for good, and when it first syncs a journal or log that it made.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTOR_BYTES = 512
_NAME = "power-cut"
_BASE = apsw.vfs_names()[0]


class Operation(NamedTuple):
    """One thing done to a file: write, truncate (to `offset`), sync, delete; or "sync directory"."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


class Disk:
    """Notes what is done to the files of one directory."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    @contextmanager
    def recording(self) -> Iterator["Disk"]:
        """Have all connections that are opened in the body use this disk."""
        vfs = _RecordingVFS(self)
        try:
            yield self
        finally:
            vfs.unregister()

    def after_cut(self, cut: int, directory: Path, rng: random.Random) -> None:
        """Write to `directory` what is found after the first `cut` operations and a power cut."""
        files: dict[str, bytearray] = {}
        pending: dict[str, list[Operation]] = {}
        for operation in self.operations[:cut]:
            if operation.kind == "sync":
                for earlier in pending.pop(operation.file, []):
                    if earlier.kind == "delete":
                        files.pop(operation.file, None)
                    else:
                        _apply(files.setdefault(operation.file, bytearray()), earlier)
            elif operation.kind == "sync directory":
                _forget_deleted(files, pending)
            else:
                pending.setdefault(operation.file, []).append(operation)
        keep = rng.choice((0.0, 0.5, 0.9, 1.0))
        for file, operations in pending.items():
            if file in files or rng.random() < max(keep, 0.5):
                _survive(files.setdefault(file, bytearray()), operations, keep, rng)
                if operations[-1].kind == "delete" and rng.random() < keep:
                    del files[file]
        for file, content in files.items():
            (directory / file).write_bytes(content)


def _forget_deleted(files: dict[str, bytearray], pending: dict[str, list[Operation]]) -> None:
    """What was deleted is gone; what was written since under the same name is another file."""
    for file, operations in list(pending.items()):
        kinds = [operation.kind for operation in operations]
        if "delete" in kinds:
            files.pop(file, None)
            pending[file] = operations[len(kinds) - kinds[::-1].index("delete") :]
            if not pending[file]:
                del pending[file]


def _survive(content: bytearray, operations: list[Operation], keep: float, rng: random.Random) -> None:
    """Apply a random part of what was not synced, each sector by itself with the chance `keep`, in random order."""
    parts = [part for operation in operations for part in _sectors(operation)]
    if keep < 1.0:
        parts = [part for part in parts if rng.random() < keep]
        rng.shuffle(parts)
    for part in parts:
        _apply(content, part)


def _sectors(operation: Operation) -> Iterator[Operation]:
    if operation.kind != "write":
        yield operation
        return
    start, end = operation.offset, operation.offset + len(operation.data)
    while start < end:
        stop = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        part = operation.data[start - operation.offset : stop - operation.offset]
        yield Operation("write", operation.file, start, part)
        start = stop


def _apply(content: bytearray, operation: Operation) -> None:
    if operation.kind == "truncate":
        del content[operation.offset :]
    elif operation.kind == "write":
        if len(content) < operation.offset:
            content.extend(bytes(operation.offset - len(content)))
        content[operation.offset : operation.offset + len(operation.data)] = operation.data


class _RecordingVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        super().__init__(_NAME, _BASE, makedefault=True)
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "_RecordingFile":
        return _RecordingFile(name, flags, self._disk)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self._disk.operations.append(Operation("delete", Path(filename).name))
        if syncdir:
            self._disk.operations.append(Operation("sync directory", ""))


class _RecordingFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], disk: Disk) -> None:
        path: Any = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._new_journal = bool(path) and not Path(path).exists() and path.endswith(("-journal", "-wal"))
        super().__init__(_BASE, name, flags)
        self._name = Path(path).name if path else None
        self._disk = disk

    def _note(self, kind: str, offset: int = 0, data: bytes = b"") -> None:
        if self._name is not None:
            self._disk.operations.append(Operation(kind, self._name, offset, data))

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._note("write", offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._note("truncate", newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._note("sync")
        if self._new_journal:
            self._new_journal = False
            self._note("sync directory")
