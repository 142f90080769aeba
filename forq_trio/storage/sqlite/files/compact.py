"""Rewrites a database without free pages: for the command line, while no server has it open.

A file that Forq made cannot give free pages back to the disk, and SQLite cannot change that in place. The file that is
written here can: from then on the server gives pages back while it works (../compaction.py).

The new file is written beside the old one, checked and synced. Once there is no log beside the old file, the new one
takes its name in one step of the file system. So whenever this is interrupted, the name belongs to the old file or to
the new one, each whole.
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
    """Rewrite the database at `path`. Until it is done, that takes additional disk space for all pages in use.

    progress: called with (pages done, pages in all). Raises StorageOpenError, and leaves the file as it was, if there
    is no file, or it is not ours, is damaged, is open in a server or another program, has a second name or belongs to
    another user, or if the disk is full.
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
