"""Durations of workers: a timedelta, a text with its unit, or seconds. What is none is refused by its option's name."""

from datetime import timedelta
from typing import Any

import pytest

from forq_trio.worker import Job, Retry, Worker, WorkerSetupError
from forq_trio.worker.testing import START_MS

MINUTE_MS = 60_000
MINUTES = [timedelta(minutes=1), "1 min", 60, 60.0]
many_minutes = pytest.mark.parametrize("minute", MINUTES, ids=map(repr, MINUTES))


@many_minutes
async def test_a_minute_is_a_minute_however_it_is_given(minute: Any) -> None:
    app, ends = Worker(), []

    @app.on("notes", lease=minute, timeout=minute)
    async def note(text: str, job: Job) -> object:
        ends.append(job.lease_until - START_MS)
        return Retry(minute) if job.attempt == 1 else None

    assert note.timeout_seconds == 60
    async with app.testing() as t:
        sent = await note.later("x", delay=minute, ttl=minute)
        stored = await t.broker.message("notes", sent.id)
        assert stored.process_after - stored.received_at == stored.ttl_ms == MINUTE_MS
        await t.advance(minute)
        assert await t.drain() == 1
        stored = await t.broker.message("notes", sent.id)
        assert (stored.status, stored.process_after) == ("delayed", START_MS + 2 * MINUTE_MS)
    assert ends == [2 * MINUTE_MS]


@many_minutes
async def test_so_is_the_wait_of_a_key(minute: Any) -> None:
    app = Worker()

    @app.on("notes")
    async def note(text: str) -> None: ...

    async with app.testing() as t:
        await note.later("x", key="k", mode="debounce", delay=minute, max_wait=minute)
        found = await t.broker.keyed_message("notes", "k")
        keyed = found.message.keyed
        assert keyed.max_wait_until - keyed.first_offer_at == MINUTE_MS


@many_minutes
async def test_so_is_a_deadline(minute: Any) -> None:
    app, left = Worker(), []

    @app.on("notes", lease=1_000)
    async def note(text: str, job: Job) -> None:
        await job.set_deadline(minute)
        left.append(job.seconds_left)
        with pytest.raises(ValueError, match=r"a deadline can only be earlier: .* not '1 h'"):
            await job.set_deadline("1 h")

    async with app.testing() as t:
        await note.later("x")
        assert await t.drain() == 1
    assert 0 < left[0] <= 60


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"lease": "5 parsecs"}, "lease: '5 parsecs': “parsecs” is no unit of time"),
        ({"lease": "5"}, "lease: '5': 5 of what"),
        ({"lease": timedelta(milliseconds=999)}, "lease: 1 to 43,200 seconds"),
        ({"timeout": True}, "timeout: a duration is a timedelta, a text such as '1h', or seconds, not bool"),
        ({"timeout": "13 h"}, "timeout: 0.001 to 43,200 seconds, not '13 h'"),
        ({"retry": [5, "soon"]}, "retry: a delay: 'soon': Type a number and a unit"),
    ],
    ids=repr,
)
def test_an_option_that_is_no_duration_is_refused_with_its_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(WorkerSetupError) as refused:

        @Worker().on("notes", **options)
        async def note(text: str) -> None: ...

    assert f"note: {told}" in str(refused.value)


async def test_so_is_one_of_a_message(face) -> None:
    app = Worker(face.methods)
    with pytest.raises(ValueError, match="delay: '5': 5 of what"):
        await app.send("notes", "x", delay="5")
    with pytest.raises(TypeError, match="max_wait: a duration is a timedelta"):
        await app.send("notes", "x", key="k", max_wait=[5])  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match="dealy"):
        await app.send("notes", "x", dealy=5)  # type: ignore[call-arg]
    assert await face.methods.queues() == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "createIfAbsent"}, "mode: only with a key"),
        ({"kind": "mails"}, "kind: only with a key"),
        ({"max_wait": 5}, "max_wait: only with a key"),
        ({"key": "k", "deduplication_id": "d"}, "deduplication_id: only without a key"),
        ({"key": "k", "deduplication_window": 5}, "deduplication_window: only without a key"),
        ({"delay": 5, "delay_ms": 7}, "delay and delay_ms are one option: give one of them"),
    ],
)
async def test_options_that_do_not_go_together_are_refused(face, options: dict[str, Any], told: str) -> None:
    app = Worker(face.methods)
    with pytest.raises(TypeError) as refused:
        await app.send("notes", "x", **options)
    assert str(refused.value) == told
    assert await face.methods.queues() == []
