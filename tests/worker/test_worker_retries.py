"""When and how often a message is tried again, by the policies of its handler."""

import random
from datetime import timedelta

import anyio
import msgspec
import pytest
from prometheus_client import CollectorRegistry

from forq_trio import open_broker
from forq_trio.model import limits
from forq_trio.worker import Backoff, DeadLetter, Job, Retry, UnreadableContent, Worker, WorkerSetupError
from forq_trio.worker.metrics import measure
from forq_trio.worker.tracing import trace
from support.spans import Spans

HOUR_MS = limits.HOUR_MS


NO = OSError("no")


def failing(error: BaseException = NO):
    """A handler that always fails, and what it saw: attempt, and whether that was the last."""
    seen: list[tuple[int, bool]] = []

    async def handle(content: str, job: Job) -> None:
        seen.append((job.attempt, job.last_attempt))
        raise error

    return handle, seen


async def drained(face, function, queue: str = "q", **options) -> Worker:
    app = Worker(face.methods)
    app.on(queue, **options)(function)
    await app.drain()
    return app


async def waits_ms(face, message_id: str, queue: str = "q") -> int:
    """How long a message waits after its latest failure."""
    message = await face.methods.message(queue, message_id)
    assert message.status == "delayed"
    return message.process_after - message.failures[-1].at


ALL_SEVEN = [(attempt, attempt == 7) for attempt in range(1, 8)]


def seven(attempt: int, error: Exception) -> float | None:
    return 0 if attempt < 7 else None


@pytest.mark.parametrize(
    ("policy", "last_is_known"),
    [([0] * 6, True), ({Exception: [0] * 6}, True), ({OSError: [0] * 6}, False), (seven, False)],
)
async def test_the_attempts_of_a_policy_are_those_of_the_message(face, policy, last_is_known) -> None:
    """Whoever sent it, and though the queue gives it five."""
    handle, seen = failing()
    sent = await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=policy)
    assert [attempt for attempt, _ in seen] == list(range(1, 8))
    assert (app.stats["q"].failed, app.stats["q"].dead) == (6, 1)
    assert (await face.methods.message("q-dlq", sent.id)).source_attempts == 7
    if last_is_known:
        assert seen == ALL_SEVEN


async def test_a_back_off_grows_and_its_last_failure_is_final(face) -> None:
    handle, seen = failing()
    sent = await face.methods.produce("q", "x", ttl_ms=30 * HOUR_MS)
    policy = Backoff(first=600, factor=3, most="2h", attempts=6)
    for delay_ms in (600_000, 1_800_000, 5_400_000, 2 * HOUR_MS, 2 * HOUR_MS):
        await drained(face, handle, retry=policy)
        assert await waits_ms(face, sent.id) == delay_ms
        await face.advance(delay_ms)
    app = await drained(face, handle, retry=policy)
    assert seen == [(attempt, attempt == 6) for attempt in range(1, 7)]
    assert app.stats["q"].dead == 1


async def test_without_attempts_of_its_own_a_back_off_has_those_of_the_queue(face) -> None:
    handle, seen = failing()
    await face.methods.configure("q", max_attempts=2)
    await face.methods.produce("q", "x")
    await drained(face, handle, retry=Backoff(first=1))
    await face.advance(1_000)
    app = await drained(face, handle, retry=Backoff(first=1))
    assert (seen, app.stats["q"].dead) == ([(1, False), (2, True)], 1)


async def test_the_last_attempt_is_known_for_a_queue_that_was_not_there_when_the_worker_began(
    face, nursery
) -> None:
    handle, seen = failing()
    app = Worker(face.methods)
    app.on("q")(handle)
    nursery.start_soon(app.serve)
    await face.has_parked(1)
    await face.methods.produce("q", "x")
    while app.stats["q"].dead != 1:
        await face.advance(limits.BACKOFF_MS[-1])
    assert seen == [(attempt, attempt == 5) for attempt in range(1, 6)]
    nursery.cancel_scope.cancel()


async def test_the_random_share_of_a_delay_is_bounded_and_that_of_its_message(face) -> None:
    handle, _ = failing()
    sent = [await face.methods.produce("q", "x") for _ in range(20)]
    await drained(face, handle, retry=Backoff(first=100, jitter=0.25))
    waits = [await waits_ms(face, each.id) for each in sent]
    assert all(75_000 <= each <= 100_000 for each in waits)
    assert max(waits) - min(waits) > 10_000
    other = [await face.methods.produce("other", "x") for _ in range(20)]
    await drained(face, handle, "other", retry=Backoff(first=100, jitter=0))
    assert {await waits_ms(face, each.id, "other") for each in other} == {100_000}


async def test_a_function_is_told_attempt_and_error_and_gives_up_with_none(face) -> None:
    asked = []

    def policy(attempt: int, error: Exception) -> timedelta | None:
        asked.append((attempt, str(error)))
        return timedelta(seconds=7) if attempt < 2 else None

    handle, _ = failing(KeyError("k"))
    sent = await face.methods.produce("q", "x")
    await drained(face, handle, retry=policy)
    assert await waits_ms(face, sent.id) == 7_000
    await face.advance(7_000)
    app = await drained(face, handle, retry=policy)
    assert asked == [(1, "'k'"), (2, "'k'")]
    assert app.stats["q"].dead == 1
    letter = await face.methods.message("q-dlq", sent.id)
    assert (letter.last_error, letter.source_attempts) == ("KeyError: 'k'", 2)


async def test_where_a_function_decides_leases_that_end_count_as_with_the_queue(face) -> None:
    """A message that kills its workers comes to an end, though the function would go on for ever."""
    handle, _ = failing()
    sent = await face.methods.produce("q", "x")
    for attempt in range(1, 8):
        await drained(face, handle, retry=lambda attempt, error: 1)
        message = await face.methods.message("q", sent.id)
        assert (message.attempts, message.max_attempts) == (attempt, attempt + 5)
        await face.advance(1_000)
    for _ in range(5):
        await face.take()
        await face.advance(limits.LEASE_MS_DEFAULT)
    assert (await face.methods.message("q-dlq", sent.id)).source_attempts == 12


def raises(attempt: int, error: Exception) -> float:
    raise ZeroDivisionError("in the policy")


def exits(attempt: int, error: Exception) -> float:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (raises, "ZeroDivisionError: in the policy"),
        (exits, "SystemExit: 3"),
        (lambda attempt, error: "soon", "ValueError: a delay: "),
        (lambda attempt, error: "5", "5 of what?"),
        (lambda attempt, error: [5], "TypeError: a delay: "),
        (lambda attempt, error: True, "TypeError: a delay: "),
        (lambda attempt, error: -1, "ValueError: a delay: 0 to 2,592,000 seconds, not -1"),
        (lambda attempt, error: float("nan"), "not nan"),
        (lambda attempt, error: timedelta(days=31), "not datetime.timedelta(days=31)"),
    ],
)
async def test_a_policy_that_fails_is_named_and_nothing_is_lost(face, policy, told, caplog) -> None:
    handle, _ = failing(OSError("x" * 5_000))
    sent = await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=policy)
    assert (app.stats["q"].failed, app.stats["q"].dead) == (1, 0)
    assert await waits_ms(face, sent.id) == limits.BACKOFF_MS[0]
    reason = (await face.methods.message("q", sent.id)).last_error
    assert reason.startswith("the handler's retry policy failed: ")
    assert told in reason
    assert "OSError: xxx" in reason
    assert f"q: {sent.id}: the handler's retry policy failed: " in caplog.text


async def test_a_delay_may_be_as_long_as_thirty_days(face) -> None:
    handle, _ = failing()
    sent = await face.methods.produce("q", "x", ttl_ms=limits.TTL_MS_MAX)
    await drained(face, handle, retry=lambda attempt, error: "30 d")
    assert await waits_ms(face, sent.id) == 30 * limits.DAY_MS


BY_TYPE = {
    OSError: [60],
    ConnectionError: Backoff(first=5),
    ConnectionResetError: lambda attempt, error: 9,
    ValueError: None,
}


@pytest.mark.parametrize(
    ("error", "delay_ms"),
    [
        (ConnectionResetError(), 9_000),
        (BrokenPipeError(), 5_000),
        (FileNotFoundError(), 60_000),
        (UnicodeError(), None),
        (KeyError(), 1_000),  # the queue's
        (SystemExit(), 1_000),
    ],
)
async def test_the_nearest_class_of_an_error_counts(face, error, delay_ms) -> None:
    handle, _ = failing(error)
    sent = await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=BY_TYPE)
    if delay_ms is None:
        assert app.stats["q"].dead == 1
    else:
        assert await waits_ms(face, sent.id) == delay_ms


async def test_the_last_attempt_is_that_of_errors_without_a_policy(face) -> None:
    """Not of the attempts to which the policy of another error has raised the message's bound."""
    seen: list[tuple[int, bool]] = []

    async def handle(content: str, job: Job) -> None:
        seen.append((job.attempt, job.last_attempt))
        raise OSError if job.attempt < 6 else ValueError

    await face.methods.produce("q", "x")
    app = await drained(face, handle, retry={OSError: [0] * 9})
    assert seen == [(attempt, attempt >= 5) for attempt in range(1, 7)]
    assert app.stats["q"].dead == 1


async def test_a_sender_may_give_fewer_attempts_than_the_queue_does(face) -> None:
    handle, seen = failing()
    for own, last in ((1, 1), (3, 3), (6, 7), (9, 7)):
        seen.clear()
        await face.methods.produce("q", "x", max_attempts=own)
        app = await drained(face, handle, retry=[0] * 6)
        assert seen == [(attempt, attempt == last) for attempt in range(1, last + 1)]
        assert app.stats["q"].dead == 1


async def test_a_policy_may_give_fewer_attempts_than_the_queue_does(face) -> None:
    handle, seen = failing()
    await face.methods.configure("q", max_attempts=9)
    await face.methods.produce("q", "x")
    await drained(face, handle, retry=[0, 0])
    assert seen == [(1, False), (2, False), (3, True)]


async def test_a_changed_policy_holds_for_messages_that_failed_before(face) -> None:
    handle, seen = failing()
    sent = await face.methods.produce("q", "x")
    await drained(face, handle, retry=Backoff(first=1, most=1, attempts=8))
    assert (await face.methods.message("q", sent.id)).max_attempts == 8
    await face.advance(1_000)
    await drained(face, handle, retry=[0] * 9)
    assert seen[-1] == (10, True)


async def test_a_delay_that_the_handler_chose_has_the_attempts_of_the_policy(face) -> None:
    seen = []

    async def handle(content: str, job: Job) -> None:
        seen.append(job.attempt)
        raise Retry(timedelta(0))

    await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=[5] * 6)
    assert seen == list(range(1, 8))
    assert (app.stats["q"].failed, app.stats["q"].dead) == (6, 1)


@pytest.mark.parametrize(("delay", "ms"), [(1.1, 1_100), ("90s", 90_000), (timedelta(minutes=2), 120_000)])
async def test_the_delay_of_an_outcome_has_any_form(face, delay, ms) -> None:
    handle, _ = failing(Retry(delay))
    sent = await face.methods.produce("q", "x")
    await drained(face, handle)
    assert await waits_ms(face, sent.id) == ms
    for bad in (-1, "31 d", "soon", float("nan")):
        with pytest.raises(ValueError, match=r"not|of time|number"):
            Retry(bad)


async def test_dead_letters_are_counted_where_the_queues_bound_was_met(face, caplog) -> None:
    registry, spans = CollectorRegistry(), Spans()
    app = Worker(face.methods)
    measure(app, registry)
    trace(app, spans.provider)

    @app.on("q")
    async def handle(content: str) -> None:
        raise OSError("no")

    await face.methods.configure("q", max_attempts=2, back_off=(0,))
    await face.methods.produce("q", "x")
    await app.drain()
    assert (app.stats["q"].failed, app.stats["q"].dead) == (1, 1)
    labels = {"queue_name": "q", "outcome": "dead"}
    assert registry.get_sample_value("forq_handler_messages_total", labels) == 1
    assert [span.attributes["forq.outcome"] for span in spans.ended] == ["nack", "dead"]
    assert ["and is the last" in record.getMessage() for record in caplog.records] == [False, True]


async def test_each_message_of_a_batch_is_counted_by_what_became_of_it(face) -> None:
    async def handle(contents: list[str]) -> None:
        raise OSError("no")

    for own in (1, 2, 1):
        await face.methods.produce("q", "x", max_attempts=own)
    app = await drained(face, handle, batch=10)
    assert (app.stats["q"].failed, app.stats["q"].dead) == (1, 2)


class Mail(msgspec.Struct):
    to: str


async def mail(mail: Mail) -> None: ...


@pytest.mark.parametrize(
    ("options", "delay_ms"),
    [
        ({}, limits.BACKOFF_MS[0]),
        ({"retry": [60]}, 60_000),
        ({"retry": {UnreadableContent: Backoff(first=30), Exception: []}}, 30_000),
        ({"dead": (Exception,)}, limits.BACKOFF_MS[0]),
    ],
)
async def test_a_content_that_does_not_fit_may_be_tried_again(face, options, delay_ms, caplog) -> None:
    sent = await face.methods.produce("q", '{"from": "anna"}')
    app = await drained(face, mail, on_unreadable="retry", **options)
    assert (app.stats["q"].failed, app.stats["q"].dead) == (1, 0)
    assert await waits_ms(face, sent.id) == delay_ms
    reason = (await face.methods.message("q", sent.id)).last_error
    assert reason.startswith("the content does not fit the handler's payload: ")
    assert "`to`" in reason
    assert f"message {sent.id} is tried again: " in caplog.text


async def test_a_content_that_never_fits_becomes_a_dead_letter_at_last(face, caplog) -> None:
    sent = await face.methods.produce("q", "{}")
    app = await drained(face, mail, on_unreadable="retry", retry=[0] * 6)
    assert (app.stats["q"].failed, app.stats["q"].dead) == (6, 1)
    assert (await face.methods.message("q-dlq", sent.id)).source_attempts == 7
    assert f"message {sent.id} is a dead letter: " in caplog.text


@pytest.mark.parametrize(("policy", "warns"), [([86_400], False), ([86_400, 1], True), (["10 d"], True)])
async def test_the_log_warns_of_retries_that_messages_do_not_live_to_see(face, policy, warns, caplog) -> None:
    handle, _ = failing()
    await face.methods.produce("q", "x")
    await drained(face, handle, retry=policy)
    assert (caplog.text.count("q: `retry` goes on longer than messages live (1 d)") > 0) == warns


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_an_embedded_worker_has_the_attempts_of_its_policy(backend) -> None:
    handle, seen = failing()

    async def main() -> tuple[int, int]:
        async with open_broker("memory:") as broker:
            app = Worker(broker)
            app.on("q", retry=[0] * 6)(handle)
            await broker.produce("q", "x")
            await app.drain()
            return app.stats["q"].failed, app.stats["q"].dead

    assert anyio.run(main, backend=backend) == (6, 1)
    assert seen == ALL_SEVEN


async def asks(attempt: int, error: Exception) -> float:
    return 1


@pytest.mark.parametrize(
    "options",
    [
        {"retry": Backoff},
        {"retry": asks},
        {"retry": lambda attempt: 1},
        {"retry": ["soon"]},
        {"retry": [float("inf")]},
        {"retry": [timedelta(days=31)]},
        {"retry": {OSError: "1h"}},
        {"retry": {KeyboardInterrupt: [1]}},
        {"on_unreadable": "ignore"},
    ],
)
def test_what_is_no_policy_is_refused_at_once(options) -> None:
    (name,) = options
    with pytest.raises(WorkerSetupError, match=f"mail: {name}: "):
        Worker().on("q", **options)(mail)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"first": 0}, "first: 0.001 to 3,600 seconds"),
        ({"first": "2h"}, "first: 0.001 to 3,600 seconds, not '2h'"),
        ({"first": 1, "most": "31 d"}, "most: "),
        ({"first": 1, "factor": 0.5}, "factor: 1 to 100, not 0.5"),
        ({"first": 1, "jitter": 1.1}, "jitter: 0 to 1, not 1.1"),
        ({"first": 1, "jitter": float("nan")}, "jitter: "),
        ({"first": 1, "attempts": 0}, "attempts: 1 to 1,000,000"),
        ({"first": 1, "attempts": 2.5}, "attempts: a whole number"),
        ({"first": 1, "attempts": True}, "attempts: "),
        ({"first": None}, "first: a duration is"),
    ],
)
def test_a_back_off_out_of_range_is_refused(options, told) -> None:
    with pytest.raises((ValueError, TypeError)) as refused:
        Backoff(**options)
    assert str(refused.value).startswith(told)


async def test_a_dead_letter_is_dead_whatever_the_policy_says(face) -> None:
    handle, _ = failing(DeadLetter("no such customer"))
    await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=lambda attempt, error: 1)
    assert app.stats["q"].dead == 1


async def test_random_delays_of_a_function_are_its_own(face) -> None:
    rng = random.Random(7)
    handle, _ = failing()
    sent = await face.methods.produce("q", "x")
    await drained(face, handle, retry=lambda attempt, error: rng.uniform(5, 6))
    assert 5_000 <= await waits_ms(face, sent.id) <= 6_000


@pytest.mark.parametrize("other", [{}, {ValueError: Backoff(first=1)}], ids=["no policy", "no attempts"])
async def test_a_bound_that_a_policy_raised_holds_for_its_own_errors_alone(face, other) -> None:
    seen = []

    async def handle(content: str, job: Job) -> None:
        seen.append(job.attempt)
        raise TimeoutError if job.attempt == 1 else ValueError

    sent = await face.methods.produce("q", "x")
    for _ in range(7):
        await drained(face, handle, retry={TimeoutError: Backoff(first=1, attempts=12), **other})
        await face.advance(limits.BACKOFF_MS[-1])
    assert seen == [1, 2, 3, 4, 5]
    assert (await face.methods.message("q-dlq", sent.id)).source_attempts == 5


async def test_a_bound_that_the_sender_gave_stays_where_no_policy_raises_one(face) -> None:
    handle, seen = failing(ValueError())
    await face.methods.produce("q", "x", max_attempts=7)
    for _ in range(8):
        await drained(face, handle, retry={TimeoutError: [1]})
        await face.advance(limits.BACKOFF_MS[-1])
    assert [attempt for attempt, _ in seen] == list(range(1, 8))


@pytest.mark.parametrize("delay", [0, None])
@pytest.mark.parametrize(
    ("policy", "attempts"), [([], 1), ([0, 0], 3), (Backoff(first=0.001, attempts=2), 2)]
)
async def test_a_retry_that_the_handler_wants_is_within_the_attempts_of_the_policy(
    face, delay, policy, attempts
) -> None:
    """With a delay of its own it had those of the queue, where these are more."""
    seen = []

    async def handle(content: str, job: Job) -> None:
        seen.append(job.last_attempt)
        raise Retry(delay)

    await face.methods.produce("q", "x")
    app = await drained(face, handle, retry=policy)
    while app.stats["q"].dead != 1:
        await face.advance(10)
        await app.drain()
    assert seen == [False] * (attempts - 1) + [True]
