"""The compaction of the running server: free pages of the file are given back to the disk."""

from typing import Literal

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

CompactionState = Literal["idle", "running", "paused", "done", "stopped", "failed"]


class CompactionInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """The compaction that runs, else the one that ended last since the start.

    state: idle before the first. automatic: the server began it by itself. startedBy: the name of the access token that
    asked for it; null for the server's secret and for the server itself. givenBackBytes: so far; it stays given back.
    goalBytes: what it gives back in all. fileBytes, freeBytes: of the file, and how much of it holds nothing, now.
    possible: false where the file cannot give pages back (`forq compact --db` makes one that can).
    error: why it failed.
    """

    state: CompactionState = "idle"
    automatic: bool = False
    started_at: EpochMs | None = None
    started_by: str | None = None
    given_back_bytes: Count = 0
    goal_bytes: Count = 0
    file_bytes: Count = 0
    free_bytes: Count = 0
    possible: bool = True
    finished_at: EpochMs | None = None
    error: str | None = None
