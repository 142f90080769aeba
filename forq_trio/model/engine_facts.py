"""Facts about a storage engine, for the admin UI."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

SendsRefused = Literal["storage_full", "storage_lost"]
"""Why sends to all queues are refused."""
REFUSAL_WORDS: Mapping[SendsRefused, str] = {
    "storage_full": "The disk is full, sends are refused",
    "storage_lost": "A file of the database is missing, sends are refused",
}

ReplicaState = Literal["used", "behind", "away"]
"""Whether reads go to the replica ("used"), or the primary answers because the replica is behind or away."""


class EngineFacts(Struct, frozen=True, kw_only=True):
    """What an engine is, and how much disk space it uses; for the admin UI."""

    name: str
    version: str
    durability: str
    shared: bool = False  # other processes may use the database, which is not a file of ours
    replica: ReplicaState | None = None  # None if there is none
    path: str | None = None  # of the file; None if that is temporary or in memory, or if there is none
    file_bytes: int = 0  # of the database file, without its log
    free_page_bytes: int = 0  # the free pages in that file, as of the last checkpoint
    gives_pages_back: bool = False  # free pages can be given back to the disk
    log_bytes: int = 0  # the part of the log that is in use
    log_file_bytes: int = 0  # of the log's file
    log_bytes_max: int = 0  # how long the log becomes before it is started over, unless a long read holds it
    disk_free_bytes: int | None = None  # this and the next: of its disk; None if that cannot be told
    disk_total_bytes: int | None = None
