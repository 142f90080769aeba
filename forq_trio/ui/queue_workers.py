"""The workers of one queue, for its page."""

from heapq import nsmallest

from msgspec import Struct

from forq_trio.model.messages.types import MessageInfo
from forq_trio.model.workers.types import MessageHolder
from forq_trio.ui.site import Site

WORKERS_SHOWN = 10


class WorkerOfQueue(Struct, frozen=True):
    """A worker in this queue. heard_at: epoch ms."""

    name: str
    busy: int
    slots: int
    silent: bool
    heard_at: int


class ShownWorkers(Struct, frozen=True):
    """The workers of a queue at a moment.

    known: how many serve the queue. shown: the first of them, silent ones before others. at: epoch ms. unnamed: how
    many other consumers wait.
    """

    known: int
    busy: int
    slots: int
    shown: list[WorkerOfQueue]
    unnamed: int
    at: int


def holder_of(site: Site, message: MessageInfo) -> MessageHolder | None:
    """The worker that has a message in flight; None if none has reported that it does."""
    if message.status != "processing":
        return None
    return site.broker.known_workers.holder_of(message.queue, message.id, message.attempts)


def workers_of(site: Site, queue: str) -> ShownWorkers:
    """The workers of a queue that are known now."""
    found = [
        WorkerOfQueue(info.report.name, part.busy, part.slots, info.silent, info.heard_at)
        for info in site.broker.known_workers.of(queue)
        if (part := info.part_of(queue)) is not None
    ]
    shown = nsmallest(WORKERS_SHOWN, found, key=lambda each: (not each.silent, each.name))
    answering = sum(not each.silent for each in found)
    return ShownWorkers(
        len(found),
        sum(each.busy for each in found),
        sum(each.slots for each in found),
        shown,
        max(0, site.broker.known.waiting(queue) - answering),
        site.clock.now_ms(),
    )
