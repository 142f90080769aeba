"""The compaction of the running server: free pages of the file are given back to the disk."""

from typing import Literal

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs

CompactionState = Literal["idle", "running", "paused", "done", "stopped", "failed"]


class CompactionInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """The compaction that runs, else the one that ended last since the start."""

    state: CompactionState = "idle"  # `idle` before the first
    automatic: bool = False  # the server began it by itself
    started_at: EpochMs | None = None  # when it began; null before the first
    # the name of the access token that asked for it; null for the server's secret and for the server itself
    started_by: str | None = None
    given_back_bytes: Count = 0  # so far; it stays given back
    goal_bytes: Count = 0  # what it gives back in all
    file_bytes: Count = 0  # the size of the file, as of the last checkpoint
    free_bytes: Count = 0  # how much of it holds nothing, as of the last checkpoint
    # false for a file that cannot give pages back, until `forq compact --db` has rewritten it
    possible: bool = True
    finished_at: EpochMs | None = None  # when it ended; null before
    error: str | None = None  # why it failed
