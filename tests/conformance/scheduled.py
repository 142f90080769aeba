"""The words of tests about schedules."""

from datetime import UTC, datetime

from forq_trio.model.commands import SaveSchedule
from forq_trio.model.schedules.types import NewSchedule

from .script import T0, do, run

MINUTE_MS = 60_000


def at(*local: int) -> int:
    """The instant of a time in UTC."""
    return int(datetime(*local, tzinfo=UTC).timestamp() * 1_000)


def save(engine, name="s", *, now=T0, by=None, only_new=False, **members):
    members = {"queue": "q", "content": name, **members}
    if not members.keys() & {"cron", "every", "daily"}:
        members["every"] = "10s"
    return do(engine, SaveSchedule(name, NewSchedule(**members), only_new, by), now=now)


def results(reader, name="s", count=100):
    """What became of the runs, oldest first, as (result, nominal, how many)."""
    return [(run.result, run.nominal, run.runs) for run in reader.schedule(name, count)[1][::-1]]


def tick(engine, now):
    """A batch without commands; how many messages it sent."""
    result = run(engine, now=now)
    return sum(event.count for event in result.events if event.kind == "produced")


def until(engine, end, now=T0):
    """Run batches whenever the engine asks for one, up to `end`; how many messages they sent."""
    sent = 0
    while True:
        result = run(engine, now=now)
        sent += sum(event.count for event in result.events if event.kind == "produced")
        if result.next_due_ms is None or result.next_due_ms > end:
            return sent
        now = max(now, result.next_due_ms)
