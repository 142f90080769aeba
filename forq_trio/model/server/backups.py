"""Backups that the server makes: the latest, and the files that are there."""

from typing import Literal

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

BackupState = Literal["running", "done", "failed", "cancelled"]


class BackupInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """One backup."""

    name: str  # the name of its file
    state: BackupState  # `cancelled`: the server stopped; the file is not there
    started_at: EpochMs  # when it began
    # the name of the access token that asked for it; null for the server's secret and for the server itself
    started_by: str | None = None
    scheduled: bool = False  # the server began it by itself
    pages_done: Count = 0  # how many are copied
    pages_total: Count = 0  # how many there are to copy
    # by how much the write-ahead log grew, which cannot be emptied while pages are copied
    log_grew_bytes: Count = 0
    finished_at: EpochMs | None = None  # when it ended; null before
    bytes: Count | None = None  # of the finished file; null before
    error: str | None = None  # why it failed; null otherwise


class BackupFile(Struct, frozen=True, rename="camel"):
    """A backup that is there."""

    name: str  # the name of its file
    bytes: Count  # its size
    made_at: EpochMs  # when it was begun, as its name says


class Backups(Struct, frozen=True, kw_only=True, rename="camel"):
    """The backups of the server."""

    directory: str  # where the files are, on the server
    keep: Count  # how many files stay
    # the one that runs, else the one that ended last since the start; null without one
    latest: BackupInfo | None
    next_at: EpochMs | None  # when the server makes one by itself; null for never
    files: list[BackupFile]  # the latest first
