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
"""Whether reads go to the replica; else the primary answers them."""


class EngineFacts(Struct, frozen=True, kw_only=True):
    """What an engine is and how much disk it uses, in bytes; for the admin UI.

    shared: other processes may use the database; it is no file of ours. path: of the file, None for one that is
    temporary or in memory, or where there is none. file: of the database without its log;
    free_page_bytes: its free pages, as of the last checkpoint; gives_pages_back: whether it can give them back to the
    disk. log_bytes: of the log, in a file of log_file_bytes; log_bytes_max: how long it becomes before it
    is started over, if no long read holds it. disk_free_bytes, disk_total_bytes: of the disk of the database; None
    where that cannot be told. replica: None where there is none.
    """

    name: str
    version: str
    durability: str
    shared: bool = False
    replica: ReplicaState | None = None
    path: str | None = None
    file_bytes: int = 0
    free_page_bytes: int = 0
    gives_pages_back: bool = False
    log_bytes: int = 0
    log_file_bytes: int = 0
    log_bytes_max: int = 0
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
