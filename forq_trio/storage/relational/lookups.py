"""The part of a Transaction that has looked things up, so that none is read twice, and those of many at once."""

from typing import Any

from forq_trio.storage.relational.cache import Group


class Lookups:
    """What one batch has read of what it needs again, as of the last command.

    last_of_group, first_ready: positions by queue, then by group and priority, while messages are sent; joining: groups
    whose positions are read once their queue has joined the rounds; priorities: which ready messages such a queue has.
    dedup: the first messages with deduplication ids,
    None for none; windows: the bindings of `save_dedup`, yet to be run. in_process: how many messages of groups are
    processing, for the limits that are made next. buckets: when those of groups and queues are full again, by their
    rates; buckets_taken: how many were taken from. oldest_apps: by `once`, where one was looked for that is too old.
    """

    def __init__(self) -> None:
        self.last_of_group: dict[str, dict[tuple[str, int], int | None]] = {}
        self.first_ready: dict[str, dict[int, int | None]] = {}
        self.joining: dict[str, dict[tuple[str, str, int], None]] = {}
        self.priorities: dict[str, list[int]] = {}
        self.dedup: dict[tuple[str, str], tuple[str, int] | None] = {}
        self.windows: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.in_process: dict[Group, int] = {}
        self.buckets: dict[tuple[str, str, int, int], int] = {}
        self.buckets_taken = 0
        self.oldest_apps: dict[bool, list[Any]] = {}

    def forget_positions(self, queue: str) -> None:
        """Messages that are gone may have been the last of their group, or the first that are ready."""
        self.last_of_group.pop(queue, None)
        self.first_ready.pop(queue, None)
        self.priorities.pop(queue, None)
