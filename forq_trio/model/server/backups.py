"""Backups that the server makes: the latest, and the files that are there."""

from typing import Literal

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

BackupState = Literal["running", "done", "failed", "cancelled"]


class BackupInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """One backup.

    name: of its file in the directory. startedBy: the name of the access token that asked for it; null for the server's
    secret and for the server itself. pagesDone, pagesTotal: how far the copying has come. bytes: of the finished file.
    logGrewBytes: by how much the write-ahead log grew, which could not be emptied while pages were copied. error: why
    it failed. cancelled: the server stopped; the file is not there.
    """

    name: str
    state: BackupState
    started_at: EpochMs
    started_by: str | None = None
    scheduled: bool = False
    pages_done: Count = 0
    pages_total: Count = 0
    log_grew_bytes: Count = 0
    finished_at: EpochMs | None = None
    bytes: Count | None = None
    error: str | None = None


class BackupFile(Struct, frozen=True, rename="camel"):
    """A backup that is there. madeAt: when it was begun, as its name says."""

    name: str
    bytes: Count
    made_at: EpochMs


class Backups(Struct, frozen=True, kw_only=True, rename="camel"):
    """latest: the backup that runs, else the one that ended last since the start; null without one.

    nextAt: when the server makes one by itself; null for never. keep: how many files stay. files: the latest first.
    """

    directory: str
    keep: Count
    latest: BackupInfo | None
    next_at: EpochMs | None
    files: list[BackupFile]
