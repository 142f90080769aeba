"""Tasks over dead letters, as they are stored."""

from typing import Any

from forq_trio.model.redrives import RedriveTask
from forq_trio.model.searches import AppliedFilter, MessageFilter
from forq_trio.model.values import seen

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
