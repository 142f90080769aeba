"""Batches and chains of a worker: `app.batch`, `job.batch`, `app.chain`."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio

from forq_trio import MessageBatchEnded, open_broker
from forq_trio.model import limits
from forq_trio.model.errors import Forbidden, ForqError, InvalidQueueName, Overloaded
from forq_trio.worker import Discard, Job, Worker

both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


def an_application(seen: list[Any]) -> Worker:
    """Its server is never asked."""
    app = Worker("http://127.0.0.1:1")

    @app.on("pages", retry=[])
    async def page(number: int, job: Job) -> None:
        seen.append(number)
        if number == 13:
            raise OSError("no luck")
        if number >= 100:
            assert job.batch is not None
            await job.batch.add("pages", number // 100)

    @app.on("sheets")
    def sheet(number: int, job: Job) -> None:
        seen.append(number)
        assert job.batch is not None
        job.batch.add_blocking("pages", number + 1)

    @app.on("reports")
    async def report(album: str, job: Job) -> None:
        seen.append((album, (job.attributes or {}).get("forq-batch")))

    @app.on("alarms")
    async def alarm(album: str) -> None:
        seen.append(f"alarm {album}")

    @app.on("skipped")
    async def skip(number: int) -> Discard:
        return Discard("not wanted")

    return app


@both
def test_then_is_handled_once_after_all_members(backend: str) -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            async with app.batch(then=app.handlers["reports"], payload="a") as batch:
                await batch.add("pages", 1)
                await batch.add_many(app.handlers["pages"], [2, 300], priority=7)
                await batch.add("sheets", 40)
                assert (await batch.progress()).left == 4
            assert t.sent("pages") == [1, 2, 300]
            await t.drain()
            assert (await app.batch_progress(batch.id)).outcome == "sent"
            with pytest.raises(MessageBatchEnded):
                await batch.add("pages", 5)

    anyio.run(main, backend=backend)
    assert sorted(seen[:-1]) == [1, 2, 3, 40, 41, 300]
    assert seen[-1] == ("a", None)


def test_a_dead_letter_rings_once_and_then_comes_all_the_same() -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            async with app.batch(then="reports", payload="a", on_dead="alarms") as batch:
                await batch.add_many("pages", [13, 13, 1])
            await t.drain()
            assert (await batch.progress()).dead == 2

    anyio.run(main, backend="trio")
    assert seen.count("alarm a") == seen.count(("a", None)) == 1


def test_a_body_that_raises_abandons_its_batch() -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            with suppress(ZeroDivisionError):
                async with app.batch(then="reports", payload="a") as batch:
                    await batch.add("pages", 1)
                    raise ZeroDivisionError
            with anyio.CancelScope() as scope:
                async with app.batch(then="reports", payload="b") as cancelled:
                    scope.cancel()
                    await anyio.lowlevel.checkpoint()
            await t.drain()
            for each in (batch, cancelled):
                assert (await each.progress()).outcome == "abandoned"

    anyio.run(main, backend="trio")
    assert seen == [1]


def test_a_batch_inside_of_another_ends_before_it() -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            async with (
                app.batch(then="reports", payload="outer") as outer,
                app.batch(then="reports", payload="inner", outer=outer) as inner,
            ):
                await inner.add("pages", 1)
            await t.drain()
            seen.append(outer.id)

    anyio.run(main, backend="trio")
    assert seen[:3] == [1, ("inner", seen[3]), ("outer", None)]


def test_the_steps_of_a_chain_are_handled_one_after_the_other() -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            chain = await app.chain(("pages", 1), ("pages", 2), (app.handlers["reports"], "a"))
            await t.drain()
            assert (await app.batch_progress(chain)).outcome == "sent"

    anyio.run(main, backend="trio")
    assert seen == [1, 2, ("a", None)]


def test_a_chain_stops_at_a_step_that_is_not_done() -> None:
    seen: list[Any] = []
    app = an_application(seen)

    async def main() -> None:
        async with app.testing() as t:
            dead = await app.chain(("pages", 13), ("pages", 1))
            skipped = await app.chain(("skipped", 1), ("pages", 2))
            await t.drain()
            assert seen == [13]
            assert (await app.batch_progress(skipped)).outcome == "unmet"
            assert (await app.batch_progress(dead)).state == "closed"
            (letter,) = await t.broker.peek("pages-dlq")
            await t.broker.redrive("pages-dlq", [letter.id])
            await t.drain()
            assert seen == [13, 13]

    anyio.run(main, backend="trio")


def test_a_chain_has_a_bound_and_leaves_nothing_if_it_is_refused() -> None:
    app = an_application([])

    async def main() -> None:
        async with app.testing() as t:
            with pytest.raises(ValueError, match="2 to 9 steps, not 1"):
                await app.chain(("pages", 1))  # type: ignore[call-arg]
            with pytest.raises(ValueError, match="2 to 9 steps, not 10"):
                await app.chain(*[("pages", number) for number in range(10)])
            with pytest.raises(TypeError, match=r"a step is a pair, \(handler, payload\), not 'pages'"):
                await app.chain(("pages", 1), "pages")  # type: ignore[arg-type]
            with pytest.raises(InvalidQueueName):
                await app.chain(("pages", 1), ("no such name", 2), ("pages", 3))
            await app.chain(*[("pages", number) for number in range(9)])
            states = [each.outcome for each in (await t.broker.batches()).batches]
            assert states == [None] * 8 + ["abandoned"]

    anyio.run(main, backend="trio")


def test_a_worker_that_is_not_open_opens_no_batch() -> None:
    app = Worker("http://127.0.0.1:1")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="not open"):
            async with app.batch():
                pass

    anyio.run(main, backend="trio")


def test_what_a_batch_sends_has_a_payload_and_a_place() -> None:
    app = an_application([])
    opened: Any = app.batch
    for missing in ({"then": "reports"}, {"on_dead": app.handlers["alarms"]}, {"then": "a", "on_dead": "b"}):
        with pytest.raises(TypeError, match="payload: what is sent to `then` or `on_dead` is missing"):
            opened(**missing)
    for value in ("a", None):
        with pytest.raises(TypeError, match="payload: there is neither `then` nor `on_dead`"):
            opened(payload=value)


async def test_nothing_may_be_a_payload() -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker)
        async with app.batch(then="reports", payload=None):
            pass
        (delivery,) = await broker.receive("reports")
    assert delivery.content == "null"


class Troubled:
    """A source. Calls of the named methods fail as they are told, None not at all; later calls do not.

    Told "before" or "after", the task of whoever asks is cancelled before the call or after it.
    """

    def __init__(self, source: Any, **troubles: list[ForqError | str | None]) -> None:
        self.scope = anyio.CancelScope()
        self._source = source
        self._troubles = troubles

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._source, name)
        return partial(self._call, method, self._troubles[name]) if name in self._troubles else method

    async def _call(self, method: Callable[..., Any], troubles: Any, *given: Any, **options: Any) -> Any:
        trouble = troubles.pop(0) if troubles else None
        if isinstance(trouble, ForqError):
            await anyio.lowlevel.checkpoint()
            raise trouble
        answer = None if trouble == "before" else await method(*given, **options)
        if trouble is not None:
            self.scope.cancel()
            await anyio.lowlevel.checkpoint()
        return answer


def ends_of(
    backend: str,
    deed: Callable[[Worker], Awaitable[None]],
    raised: type[ForqError] | None,
    **troubles: list[ForqError | str | None],
) -> tuple[list[int], list[str | None]]:
    """Which pages were handled, and how the batches ended, the newest first. raised: by the deed."""
    return anyio.run(ends_in, deed, raised, troubles, backend=backend)


async def ends_in(
    deed: Callable[[Worker], Awaitable[None]],
    raised: type[ForqError] | None,
    troubles: dict[str, list[ForqError | str | None]],
) -> tuple[list[int], list[str | None]]:
    """See `ends_of`."""
    seen: list[int] = []
    async with open_broker("memory:") as broker:
        source = Troubled(broker, **troubles)
        app = Worker(source)  # type: ignore[arg-type]

        @app.on("pages")
        async def page(number: int) -> None:
            seen.append(number)

        with source.scope, pytest.raises(raised) if raised else nullcontext():
            await deed(app)
        await app.drain()
        return seen, [each.outcome for each in (await broker.batches()).batches]


async def one_batch(app: Worker) -> None:
    async with app.batch(then="pages", payload=2) as batch:
        await batch.add("pages", 1)


async def three_steps(app: Worker) -> None:
    await app.chain(("pages", 1), ("pages", 2), ("pages", 3))


BUSY, NEVER = Overloaded(), Forbidden()


@both
@pytest.mark.parametrize(
    ("close", "raised", "ends"),
    [
        ([BUSY], None, ([1, 2], ["sent"])),
        ([BUSY, BUSY], None, ([1, 2], ["sent"])),
        ([NEVER, NEVER], Forbidden, ([1], ["abandoned"])),
        (["before"], None, ([1, 2], ["sent"])),
        (["after"], None, ([1, 2], ["sent"])),
        (["before", NEVER], None, ([1], ["abandoned"])),
    ],
)
def test_a_close_that_fails_or_is_cancelled_leaves_no_open_batch(
    backend: str, close: Any, raised: Any, ends: Any
) -> None:
    assert ends_of(backend, one_batch, raised, close_batch=[*close]) == ends


@pytest.mark.parametrize(
    ("tries", "raised", "ends"), [(12, None, ([1, 2], ["sent"])), (30, Overloaded, ([1], ["abandoned"]))]
)
async def test_a_close_waits_for_a_server_that_restarts(
    autojump_clock: trio.testing.MockClock, tries: int, raised: Any, ends: Any
) -> None:
    """It gave the batch up after five seconds; 12 tries take 36. If that failed, too, the batch was left open."""
    assert await ends_in(one_batch, raised, {"close_batch": [BUSY] * tries}) == ends


@both
def test_an_open_that_is_cancelled_before_its_answer_leaves_no_open_batch(backend: str) -> None:
    assert ends_of(backend, one_batch, None, open_batch=["after"]) == ([], ["abandoned"])


@both
@pytest.mark.parametrize(
    ("troubles", "raised", "ends"),
    [
        ({"open_batch": [None, NEVER]}, Forbidden, ([], ["abandoned"])),
        ({"open_batch": [None, "after"]}, None, ([], ["abandoned"] * 2)),
        ({"close_batch": [BUSY]}, Overloaded, ([], ["abandoned"] * 2)),
        ({"close_batch": [None, BUSY]}, None, ([1, 2, 3], ["sent"] * 2)),
        ({"close_batch": [None, "before"]}, None, ([1, 2, 3], ["sent"] * 2)),
        ({"add_to_batch": [BUSY]}, Overloaded, ([], ["abandoned"] * 2)),
    ],
)
def test_a_chain_goes_on_or_sends_nothing(backend: str, troubles: Any, raised: Any, ends: Any) -> None:
    told = {name: [*each] for name, each in troubles.items()}
    assert ends_of(backend, three_steps, raised, **told) == ends


async def test_attributes_of_the_program_leave_room_for_those_of_batches() -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.attributes
        def of_each() -> dict[str, str]:
            return {f"a{number}": "x" for number in range(limits.ATTRIBUTES_MAX)}

        @app.on("pages")
        async def page(number: int, job: Job) -> None:
            seen.append(sorted(job.attributes or {}))

        seen: list[list[str]] = []
        async with app.batch(then="pages", payload=2) as batch:
            await batch.add("pages", 1)
        await page.later(3)
        await app.drain()
    own = [f"a{number}" for number in range(limits.ATTRIBUTES_MAX)]
    assert sorted(seen) == sorted([own, [*own[:-2], "forq-batch"], [*own[:-2], "forq-ended-batch"]])
