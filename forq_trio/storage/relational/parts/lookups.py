"""What a batch has looked up, so that nothing is read twice and many commands share one read."""

from typing import Any

from forq_trio.storage.relational.parts.groups import Group
from forq_trio.storage.relational.parts.part import Part


class Lookups(Part):
    """The results of a batch's reads, as of the last command, and what is still to be written with them."""

    def __init__(self) -> None:
        self.last_of_group: dict[str, dict[tuple[str, int], int | None]] = {}
        """Positions of the last messages of groups, by queue, then by group and priority, while messages are sent."""
        self.first_ready: dict[str, dict[int, int | None]] = {}
        """Positions of the first ready messages, by queue, then by priority."""
        self.joining: dict[str, dict[tuple[str, str, int], None]] = {}
        """Groups whose positions are read once their queue has joined the rounds."""
        self.priorities: dict[str, list[int]] = {}  # the priorities of the ready messages of such a queue
        self.dedup: dict[tuple[str, str], tuple[str, int] | None] = {}
        """The first messages with deduplication ids, None for none."""
        self.windows: dict[tuple[str, str], tuple[Any, ...]] = {}  # bindings of `save_dedup`, yet to be run
        self.in_process: dict[Group, int] = {}
        """How many messages of groups are processing, for the limits that are made next."""
        self.buckets: dict[tuple[str, str, int, int], int] = {}
        """When the buckets of groups and queues are full again, by queue, group and rate."""
        self.buckets_taken = 0  # how many were taken from
        self.made: dict[
            str, dict[str, int]
        ] = {}  # by table: how many rows each key made, once one more was to be made
        self.oldest_apps: dict[bool, list[Any]] = {}  # by `once`, where one was looked for that is too old

    def forget_positions(self, queue: str) -> bool:
        """Drop the known positions of a queue: messages that are gone may have been the last of their group, or the
        first that are ready.

        True if any were known. They may belong to messages that are not written yet.
        """
        known = queue in self.last_of_group or queue in self.first_ready
        if known or self.priorities:
            self.last_of_group.pop(queue, None)
            self.first_ready.pop(queue, None)
            self.priorities.pop(queue, None)
        return known

    def copy(self) -> Any:
        return {name: _copied(value) for name, value in vars(self).items()}

    def restore(self, copied: Any) -> None:
        vars(self).update(copied)

    def adopt(self) -> None:
        self.discard()

    def discard(self) -> None:
        for name, value in vars(self).items():
            if value:
                setattr(self, name, type(value)())


def _copied(value: Any) -> Any:
    """A copy two levels deep, which is enough because deeper values are never changed in place."""
    if isinstance(value, dict):
        return {key: each.copy() if isinstance(each, dict | list) else each for key, each in value.items()}
    return value
