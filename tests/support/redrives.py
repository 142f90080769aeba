"""Tasks over dead letters: as they are stored, and dead letters enough for one that goes on."""

from typing import Any

from forq_trio.client.sync import ForqClient
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.model.dead_letters.searches import AppliedFilter, MessageFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.values import seen

MANY = 100
"""So many dead letters that a task over them with one a second outlasts its test, however busy the machine is."""
ID = "00000000-0000-4000-8000-000000000001"
_JUST_STARTED = {
    "action": "redrive",
    "state": "running",
    "dry_run": False,
    "target": None,
    "rate_per_second": None,
    "searched": 0,
    "matched": 0,
    "skipped": 0,
    "moved": 0,
    "total": 0,
    "started_at": 1,
    "started_by": None,
    "paused_at": None,
    "finished_at": None,
    "error": None,
}


def redrive_task(id: str = ID, queue: str = "q-dlq", text: str | None = None, **members: Any) -> RedriveTask:
    """A task that has just started, but for these members; it is over all that have this text (None: over all)."""
    wanted = seen(AppliedFilter, MessageFilter(text=text))
    return RedriveTask(**{"id": id, "queue": queue, "filter": wanted, **_JUST_STARTED, **members})


def many_dead_letters(client: ForqClient, queue: str) -> None:
    """MANY messages of a queue that fail at their only attempt: none of them is in the queue afterwards."""
    client.produce_many(queue, [NewMessage(str(number), max_attempts=1) for number in range(MANY)])
    client.nack(queue, [each.receipt for each in client.receive(queue, max_messages=MANY, wait_ms=0)])
