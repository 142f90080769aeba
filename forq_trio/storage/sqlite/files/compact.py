"""Rewrites a database without free pages: for the command line, while no server has it open.

A file that Forq made cannot give free pages back, and SQLite cannot change that in place. What is written here can:
from then on the server does it beside its work (operations/compaction.py).

The new file is written beside the old one, checked and synced, and takes its name in one step of the file system, when
nothing but the old file is left under the names that SQLite looks for. So if this is interrupted at any point, the name
belongs to the old file or to the new one, each whole.
"""

import os
from contextlib import closing

from msgspec import Struct

from forq_trio.model.errors import StorageOpenError
from forq_trio.storage.sqlite.files.copy import Progress, copy_database
from forq_trio.storage.sqlite.files.open import check_exists, check_one_name, has_log, open_alone
from forq_trio.storage.sqlite.files.recognise import FileKind, recognise
from forq_trio.storage.sqlite.files.replace import replacing


class CompactedFile(Struct, frozen=True):
    """The size of a database in bytes, before and after."""

    before: int
    after: int


def compact_file(path: str, progress: Progress | None = None) -> CompactedFile:
    """Rewrite the database at `path`; that takes as much disk space again as what is in use.

    progress: called with (pages done, pages in all). Raises StorageOpenError, and leaves the file as it was: when there
    is none, it is not ours, it is damaged, the disk is full, a server or another program has it open, it has a second
    name, or it belongs to another user.
    """
    check_exists(path)
    with replacing(path) as real_path, closing(open_alone(real_path)) as source:
        check_one_name(real_path, path)
        if recognise(source, path) is not FileKind.OURS:
            raise StorageOpenError(f"{path} is a Forq database: `forq serve` migrates it, compact it then")
        if has_log(real_path):
            raise StorageOpenError(f"{path} is damaged: SQLite cannot read its log")
        before = os.path.getsize(real_path)
        return CompactedFile(before, copy_database(source, real_path, progress))
