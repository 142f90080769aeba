"""Batches and chains of a worker: `app.batch`, `job.batch`, `app.chain`."""

from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from forq_trio import MessageBatchEnded, MessageBatchTooDeep
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
            with pytest.raises(ValueError, match="at least two steps"):
                await app.chain(("pages", 1))
            with pytest.raises(MessageBatchTooDeep):
                await app.chain(*[("pages", number) for number in range(10)])
            await app.chain(*[("pages", number) for number in range(9)])
            states = [each.outcome for each in (await t.broker.batches()).batches]
            assert states == [None] * 8 + ["abandoned"] * 8

    anyio.run(main, backend="trio")


def test_a_worker_that_is_not_open_opens_no_batch() -> None:
    app = Worker("http://127.0.0.1:1")

    async def main() -> None:
        with pytest.raises(RuntimeError, match="not open"):
            async with app.batch():
                pass

    anyio.run(main, backend="trio")
