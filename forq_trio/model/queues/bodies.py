"""Queues: their counts, settings and rules. The settings themselves are the model's types."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.queries import Query
from forq_trio.model.queues.settings import QueueRules, QueueSettings, QueueTable
from forq_trio.model.values import Count, EpochMs, bounded

Level = Literal["broken", "attention", "paused", "fine"]
Remedy = Literal[
    "change_limit",
    "show_oldest",
    "show_in_flight",
    "resume",
    "show_failed",
    "set_lease",
    "show_consumers",
    "show_workers",
    "change_rate",
    "change_in_flight",
    "open_workbench",
]


class QueueHealth(Struct, frozen=True, gc=False, rename="camel"):
    """The health of a queue, in words."""

    level: Level  # `broken` before `attention`; `paused`; else `fine`
    verdict: str  # a few words
    explanation: str = ""  # the counts behind the verdict, and what it means; empty where all is fine
    remedy: Remedy | None = None  # what to do about it; null for nothing
    remedy_value: int | None = None  # with `set_lease`, the lease in milliseconds
    since: EpochMs | None = None  # from when on the cause was there; null where that is not known
    sends_refused: SendsRefused | None = None  # as in QueueInfo


class QueueInfo(Struct, frozen=True, gc=False, rename="camel"):
    """How many messages a queue has by status, and how many consumers wait for one."""

    queue: str  # its name
    is_dlq: bool  # it takes dead letters
    ready: Count  # messages that can be received now
    delayed: Count  # messages that are due later
    processing: Count  # messages that consumers have
    failed: Count  # messages that failed and are not in a dead-letter queue yet
    held: Count  # messages whose group is at the group limit (docs/glossary.md#group-limit)
    bytes: Count  # of content and attributes
    waiting: Count  # consumers that wait for a message
    paused: bool  # nothing is delivered until it is resumed
    # how long ago the oldest ready message was received; null without one, and in the list of all queues
    oldest_ready_age_ms: Count | None = None
    level: Level | None = None  # of its health; null in an application that embeds the queue
    verdict: str | None = None  # of its health, in words; null in an application that embeds the queue
    sends_refused: SendsRefused | None = None  # why sends to all queues are refused; null while they are not
    # to which the queue is bound; then the counts are those of the rows that are not finished, without bytes
    table: QueueTable | None = None

    @property
    def total(self) -> int:
        """All of its messages."""
        return self.ready + self.delayed + self.processing + self.failed + self.held


class QueuesQuery(Query, frozen=True, kw_only=True):
    """A page of queues."""

    after: Annotated[
        str, Meta(description="Only queues whose names come after this one: `next` of the page before.")
    ] = ""
    limit: Annotated[int, bounded(1, limits.QUEUES_PAGE_MAX, "How many queues at most.")] = (
        limits.QUEUES_PAGE_MAX
    )


class QueueList(Struct, frozen=True, rename="camel"):
    """A page of the queues that are known, by name."""

    queues: list[QueueInfo]  # at most `limit`
    next: str | None = None  # the `after` of the next page; null at the end


class QueueConfiguration(Struct, frozen=True, gc=False, rename="camel"):
    """The settings of a queue."""

    settings: QueueSettings  # what was set for the queue
    effective: QueueRules  # the settings with the defaults filled in


class ConfiguredQueue(QueueConfiguration, frozen=True, gc=False, kw_only=True, rename="camel"):
    """A queue that has settings."""

    queue: str  # its name


class ConfiguredQueues(Struct, frozen=True, rename="camel"):
    """A page of the queues that have settings, by name."""

    queues: list[ConfiguredQueue]  # at most `limit`
    next: str | None = None  # the `after` of the next page; null at the end


class Purged(Struct, frozen=True, gc=False, rename="camel"):
    """How many messages were removed."""

    purged: Count  # how many there were
