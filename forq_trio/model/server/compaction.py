"""The compaction of the running server: free pages of the file are given back to the disk."""

from typing import Literal

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

CompactionState = Literal["idle", "running", "paused", "done", "stopped", "failed"]


class CompactionInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """The compaction that runs, else the one that ended last since the start."""

    state: CompactionState = "idle"  # idle before the first
    automatic: bool = False  # the server began it by itself
    started_at: EpochMs | None = None
    # the name of the access token that asked for it; null for the server's secret and for the server itself
    started_by: str | None = None
    given_back_bytes: Count = 0  # so far; it stays given back
    goal_bytes: Count = 0  # what it gives back in all
    file_bytes: Count = 0  # this and the next: of the file, and how much of it holds nothing, now
    free_bytes: Count = 0
    # false where the file cannot give pages back (`forq compact --db` makes one that can)
    possible: bool = True
    finished_at: EpochMs | None = None
    error: str | None = None  # why it failed
