"""Sources and handlers that fail, and workers that are stopped."""

import asyncio
import logging

import pytest
import trio

from forq_trio import AsyncForqClient, open_broker
from forq_trio.model.errors import (
    Forbidden,
    ForqError,
    ForqUnreachable,
    InvalidSecret,
    Overloaded,
    QueueBound,
    TooManyWrongKeys,
    WrongKey,
)
from forq_trio.model.limits import AUTH_FAILURES_MAX
from forq_trio.worker import DeadLetter, Discard, Job, Retry, Worker
from forq_trio.worker.source import ANSWER_SECONDS_MAX, PAUSE_SECONDS_MAX
from support.actors import all_idle
from support.in_process import in_process_server
from support.real_server import SECRET


class Failing:
    """A source whose calls fail as they are told."""

    def __init__(self, source, **failures) -> None:
        self._source = source
        self._failures = failures

    def __getattr__(self, name):
        if self._failures.get(name):

            async def fail(*arguments, **options):
                await trio.lowlevel.checkpoint()
                raise self._failures[name].pop(0)

            return fail
        return getattr(self._source, name)


async def test_a_source_that_does_not_answer_is_asked_again(face, nursery) -> None:
    source = Failing(
        face.methods,
        settings=[ForqUnreachable("gone", sent=False)],
        receive=[ForqUnreachable("gone", sent=True), Overloaded()],
        ack=[Overloaded()],
    )
    app, seen = Worker(source), []

    @app.on("q")
    async def handle(content: str) -> None:
        seen.append(content)

    await face.methods.produce("q", "a")
    nursery.start_soon(app.serve)
    for _ in range(6):
        await all_idle()
        await face.advance(200)
    while app.stats["q"].handled != 1:
        await trio.lowlevel.checkpoint()
    assert seen == ["a"]
    app.stop()


async def test_a_queue_that_may_not_be_read_ends_the_worker(face) -> None:
    app = Worker(Failing(face.methods, receive=[Forbidden()]))

    @app.on("q")
    async def handle(content: str) -> None: ...

    with pytest.raises(Forbidden):
        await app.serve()


async def test_a_source_that_never_answers_ends_a_worker_that_stops_when_empty(face, nursery) -> None:
    gone = [ForqUnreachable("gone", sent=False) for _ in range(100)]
    app = Worker(Failing(face.methods, receive=gone))
    ended: list[ForqError] = []

    @app.on("q")
    async def handle(content: str) -> None: ...

    async def serve() -> None:
        try:
            await app.serve(stop_when_empty=True)
        except ForqError as error:
            ended.append(error)

    nursery.start_soon(serve)
    for _ in range(int(ANSWER_SECONDS_MAX - PAUSE_SECONDS_MAX)):
        await all_idle()
        assert not ended
        await face.advance(1_000)
    for _ in range(int(PAUSE_SECONDS_MAX)):
        await all_idle()
        await face.advance(1_000)
    await all_idle()
    assert [str(each) for each in ended] == ["gone"]
    assert gone  # it gave up; the source would have failed longer


async def test_the_log_says_where_a_handler_failed_and_no_more_than_its_reason(face, caplog) -> None:
    app = Worker(face.methods)

    @app.on("q", retry=[3_600])
    async def handle(content: str) -> None:
        if content == "deep":
            fall(300)
        try:
            raise KeyError("password-1")
        except KeyError as error:
            raise ValueError("bad input") from error

    def fall(depth: int) -> None:
        if depth == 0:
            raise ValueError("bad input")
        fall(depth - 1)

    for content in ("", "deep"):
        await face.methods.produce("q", content)
        caplog.clear()
        await app.drain()
        (record,) = [each for each in caplog.records if each.name == "forq_trio.worker"]
        text = logging.Formatter().format(record)
        first, *frames = text.splitlines()
        assert first.endswith("failed: ValueError: bad input")
        assert any("test_worker_trouble.py" in line and "in handle" in line for line in frames) == (
            not content
        )
        assert len(text) < 4_500
        assert "password-1" not in text
        assert "loop.py" not in text


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


async def test_no_outcome_of_a_handler_ends_the_worker(face) -> None:
    problems = [Mute(), DeadLetter(ValueError("x")), Discard(Mute()), Retry(1, Mute())]
    app = Worker(face.methods)

    @app.on("q")
    async def handle(number: int) -> object:
        if isinstance(problems[number], Mute):
            raise problems[number]
        return problems[number]

    for number in range(len(problems)):
        await app.send("q", number)
    assert await app.drain() == len(problems)


def test_a_handler_that_was_cancelled_from_inside_has_failed() -> None:
    """On asyncio any task may be cancelled; it ended the worker once, without a word."""

    async def main() -> tuple[int, int]:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q", retry=[60])
            async def handle(content: str) -> None:
                if content == "a":
                    task = asyncio.ensure_future(asyncio.Event().wait())
                    task.cancel()
                    await task

            for content in "ab":
                await app.send("q", content)
            await app.drain()
            return app.stats["q"].failed, app.stats["q"].handled

    assert asyncio.run(main()) == (1, 1)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_handler_that_wants_to_end_the_program_has_failed(face, in_thread) -> None:
    """A message whose handler calls `sys.exit` would end one worker after the other."""
    problems = [SystemExit(3), BaseException("odd"), BaseExceptionGroup("", [SystemExit(3)])]
    app = Worker(face.methods)

    async def handle(number: int) -> None:
        raise problems[number]

    def handle_in_thread(number: int) -> None:
        raise problems[number]

    app.on("q", retry=[60])(handle_in_thread if in_thread else handle)
    for number in range(len(problems)):
        await app.send("q", number)
    assert await app.drain() == len(problems)
    assert app.stats["q"].failed == len(problems)


async def test_an_error_beside_a_cancellation_does_not_end_the_worker(face) -> None:
    """A nursery raises both together; the message was not given back, and the worker ended with the error."""
    app, begun = Worker(face.methods, drain_seconds=1), trio.Event()

    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("from the clean-up")

    @app.on("q")
    async def handle(content: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_when_cancelled)
            begun.set()
            await trio.sleep_forever()

    await app.send("q", "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        await begun.wait()
        app.stop()
        await all_idle()
        await face.advance(1_000)
    (message,) = await face.methods.peek("q")
    assert (message.status, message.attempts) == ("ready", 0)


async def test_a_worker_that_was_stopped_can_be_used_again(face) -> None:
    app, seen = Worker(face.methods), []

    @app.on("q")
    async def handle(content: str) -> None:
        seen.append(content)

    async with app:
        await all_idle()
    await app.send("q", "a")
    assert await app.drain() == 1
    assert seen == ["a"]


async def test_a_worker_runs_once_at_a_time(face, nursery) -> None:
    app = Worker(face.methods)
    app.on("q")(_nothing)
    nursery.start_soon(app.serve)
    await all_idle()
    for again in (app.serve, app.drain, app.__aenter__):
        with pytest.raises(RuntimeError, match="runs"):
            await again()
    app.stop()


async def _nothing(content: str) -> None: ...


async def test_a_deadline_is_not_undone_by_a_heartbeat_under_way(face, nursery) -> None:
    ask, answer, jobs = trio.Event(), trio.Event(), []
    extend = face.methods.extend

    class Slow(Failing):
        async def extend(self, queue, receipts, lease_ms):
            if lease_ms == 30_000:
                ask.set()
                await answer.wait()
            return await extend(queue, receipts, lease_ms)

    app, begun = Worker(Slow(face.methods)), trio.Event()

    @app.on("q", lease=30)
    async def handle(content: str, job: Job) -> None:
        jobs.append(job)
        begun.set()
        await trio.sleep_forever()

    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await begun.wait()
    await all_idle()
    await face.advance(10_000)
    await ask.wait()
    nursery.start_soon(jobs[0].set_deadline, 5)
    await all_idle()
    answer.set()
    while jobs[0].lease.extended or jobs[0].seconds_left > 5:
        await trio.lowlevel.checkpoint()
    for _ in range(20):
        await trio.lowlevel.checkpoint()
    assert jobs[0].seconds_left <= 5
    message = await face.methods.message("q", jobs[0].id)
    assert message.lease_until == jobs[0].received_at + 15_000
    app.stop()
    nursery.cancel_scope.cancel()


async def test_a_deadline_holds_though_its_answer_was_lost(face, nursery) -> None:
    """The handler ran on without its lease, which the queue had shortened."""
    extend = face.methods.extend

    class Deaf(Failing):
        async def extend(self, queue, receipts, lease_ms):
            await extend(queue, receipts, lease_ms)
            raise ForqUnreachable("gone", sent=True)

    app, held, failed = Worker(Deaf(face.methods)), trio.Event(), trio.Event()

    @app.on("q", lease=30)
    async def handle(content: str, job: Job) -> None:
        if job.attempt > 1:
            return
        try:
            await job.set_deadline(5)
        except ForqUnreachable:
            failed.set()
        try:
            await trio.sleep_forever()
        finally:
            held.set()

    await app.send("q", "a")
    nursery.start_soon(app.serve)
    await failed.wait()
    await all_idle()
    await face.advance(5_000)
    await held.wait()
    app.stop()


async def test_what_is_done_when_the_drain_ends_is_acknowledged(face) -> None:
    """Its request was cancelled, and the message given back: it was handled again."""
    asked = trio.Event()
    ack = face.methods.ack

    class Slow(Failing):
        async def ack(self, queue, receipts):
            if not asked.is_set():
                asked.set()
                await trio.sleep_forever()
            return await ack(queue, receipts)

    app = Worker(Slow(face.methods), drain_seconds=1)
    app.on("q")(_nothing)
    await app.send("q", "a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        await asked.wait()
        app.stop()
        await all_idle()
        await face.advance(1_000)
    assert (await face.methods.queue_stats("q")).total == 0


async def test_a_queue_that_may_not_be_read_stops_the_others_at_once(face, nursery) -> None:
    """They went on for as long as a handler of that queue ran."""
    source = Failing(face.methods)
    app, begun, released = Worker(source, drain_seconds=1), trio.Event(), trio.Event()

    @app.on("q", concurrency=3)
    async def handle(content: str) -> None:
        source._failures["receive"] = [Forbidden()]
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            released.set()

    await app.send("q", "a")
    raised = []

    async def serve() -> None:
        try:
            await app.serve()
        except Forbidden as error:
            raised.append(error)

    async with trio.open_nursery() as workers:
        workers.start_soon(serve)
        await begun.wait()
        await app.send("q", "b")
        while not app._stopping.is_set():
            await trio.lowlevel.checkpoint()
        await all_idle()
        await face.advance(1_000)
        await released.wait()
    assert len(raised) == 1


async def nothing(content: str) -> None:
    """A handler."""


async def test_without_a_secret_the_first_refusal_ends_a_worker(monkeypatch) -> None:
    """Further tries would lock the address out, and then the worker would wait for that to end."""
    monkeypatch.delenv("FORQ_AUTH_SECRET", raising=False)
    with in_process_server(lock_out=True) as url:
        app = Worker(url, name="w")
        for queue in ("a", "b", "c", "d", "e", "f"):
            app.on(queue)(nothing)
        with trio.fail_after(30), pytest.raises(WrongKey, match="was given no secret"):
            await app.serve()
        async with AsyncForqClient(url, "wrong", retry_seconds=0) as client:
            for _ in range(AUTH_FAILURES_MAX - 2):
                with pytest.raises(WrongKey):
                    await client.queues()
            with pytest.raises(WrongKey):
                await (
                    client.queues()
                )  # the worker's was the first, so this one is the last that is not locked out
            with pytest.raises(TooManyWrongKeys):
                await client.queues()


@pytest.mark.parametrize("secret", [f"{SECRET}\n", f"{SECRET} ", f'"{SECRET}"'])
async def test_a_secret_that_no_request_can_carry_ends_a_worker(secret, monkeypatch) -> None:
    with pytest.raises(InvalidSecret, match=r"^the secret "):
        Worker("http://localhost", secret=secret)
    with pytest.raises(TypeError, match=r"secret is text \(str\), not bytes"):
        Worker("http://localhost", secret=secret.encode())
    monkeypatch.setenv("FORQ_AUTH_SECRET", secret)
    app = Worker("http://localhost")
    app.on("q")(nothing)
    with trio.fail_after(30), pytest.raises(InvalidSecret, match=r"^FORQ_AUTH_SECRET "):
        await app.serve()


async def test_a_worker_that_is_not_told_where_its_server_is_reads_the_environment(monkeypatch) -> None:
    done = []
    with in_process_server() as url:
        monkeypatch.setenv("FORQ_URL", url)
        monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
        app = Worker(presence=False)

        @app.on("q")
        async def handle(content: str) -> None:
            done.append(content)

        with trio.fail_after(30):
            async with AsyncForqClient() as client:
                await client.produce("q", "x")
            await app.serve(stop_when_empty=True)
    assert done == ["x"]


async def test_a_result_that_is_refused_for_good_fails_the_attempt(face) -> None:
    """The message was not settled, so that its handler ran again when the lease had ended, as often as it may."""
    app, seen = Worker(Failing(face.methods, ack=[QueueBound("a table stores none")])), []

    @app.on("q", keep_result="1h", retry=[60])
    async def handle(content: str) -> str:
        seen.append(content)
        return content

    sent = await face.methods.produce("q", "x")
    await app.drain()
    assert seen == ["x"]
    assert (app.stats["q"].failed, app.stats["q"].lost, app.stats["q"].handled) == (1, 0, 0)
    message = await face.methods.message("q", sent.id)
    assert (message.status, message.attempts) == ("delayed", 1)
    assert message.last_error == "the result cannot be stored: a table stores none"


class CancelledAtAck:
    """A source that refuses results. At the first one its worker is cancelled."""

    def __init__(self, source, scope: trio.CancelScope) -> None:
        self._source = source
        self._scope = scope

    def __getattr__(self, name):
        return getattr(self._source, name)

    async def ack(self, *arguments, **options):
        self._scope.cancel()
        await trio.lowlevel.checkpoint()
        raise QueueBound("a table stores none")


async def test_a_worker_that_is_cancelled_fails_an_attempt_whose_result_is_refused(face) -> None:
    sent = await face.methods.produce("q", "x")
    with trio.CancelScope() as scope:
        app = Worker(CancelledAtAck(face.methods, scope))

        @app.on("q", keep_result="1h", retry=[60])
        async def handle(content: str) -> str:
            return content

        await app.serve()
    message = await face.methods.message("q", sent.id)
    assert (message.status, message.last_error) == (
        "delayed",
        "the result cannot be stored: a table stores none",
    )
