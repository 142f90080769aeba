"""Groups of exceptions count as their causes, and a class is no outcome."""

import asyncio

import anyio
import pytest
import trio

from forq_trio import MessageInfo, open_broker
from forq_trio.model.limits import REASON_LENGTH_MAX
from forq_trio.worker import DeadLetter, Discard, Retry, Worker


async def after(face, problem: BaseException, **options) -> tuple[str, str]:
    """What becomes of a message whose handler raises this, and the reason that is stored."""
    app = Worker(face.methods)

    @app.on("q", **options)
    async def handle(content: str) -> None:
        raise problem

    sent = await face.methods.produce("q", "x")
    await app.drain()
    if app.stats["q"].discarded:
        (finished,) = (await face.methods.search_history("q")).messages
        return "discarded", finished.last_error
    message: MessageInfo = await face.methods.message("q-dlq" if app.stats["q"].dead else "q", sent.id)
    failure = message.failures[-1]
    return f"in {message.process_after - failure.at} ms" if not app.stats[
        "q"
    ].dead else "dead", failure.reason


def group(*causes: BaseException) -> BaseExceptionGroup:
    return BaseExceptionGroup("", causes)


BAD, AWAY = ValueError("bad"), OSError("away")
COUNTED = (
    (group(BAD), {"dead": (ValueError,)}, "dead", "ValueError: bad"),
    (group(group(Retry(9, "busy"))), {}, "in 9000 ms", "busy"),
    (group(BAD, AWAY), {}, "in 1000 ms", "2 errors: ValueError: bad; OSError: away"),
    (group(AWAY, group(BAD)), {"dead": (ValueError,)}, "dead", "2 errors: OSError: away; ValueError: bad"),
    (group(Retry(9), DeadLetter("no")), {}, "dead", "2 errors: Retry; DeadLetter: no"),
    (group(BAD, Retry(9, "busy")), {}, "in 9000 ms", "2 errors: ValueError: bad; Retry: busy"),
    (group(BAD, AWAY), {"retry": {OSError: [7]}}, "in 7000 ms", "2 errors: ValueError: bad; OSError: away"),
    (group(Discard("twice"), AWAY), {}, "in 1000 ms", "2 errors: Discard: twice; OSError: away"),
)


@pytest.mark.parametrize(("problem", "options", "status", "reason"), COUNTED)
async def test_a_group_counts_as_its_causes(face, problem, options, status, reason) -> None:
    assert await after(face, problem, **options) == (status, reason)


async def test_a_message_is_discarded_if_all_causes_say_so(face, caplog) -> None:
    app = Worker(face.methods)

    @app.on("q")
    async def handle(content: str) -> None:
        raise group(Discard("twice"), group(Discard("late")))

    sent = await face.methods.produce("q", "x")
    await app.drain()
    assert app.stats["q"].discarded == 1
    assert [each.getMessage() for each in caplog.records] == [f"q: {sent.id} is discarded: twice; late"]


async def test_both_tasks_of_a_nursery_fail(face, caplog) -> None:
    async def fail(error: Exception) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise error

    app = Worker(face.methods)

    @app.on("q")
    async def handle(content: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, BAD)
            nursery.start_soon(fail, AWAY)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    sent = await face.methods.produce("q", "x")
    await app.drain()
    message = await face.methods.message("q", sent.id)
    assert sorted(message.failures[-1].reason.removeprefix("2 errors: ").split("; ")) == [
        "OSError: away",
        "ValueError: bad",
    ]
    assert "in fail" in caplog.text


async def test_the_log_says_where_a_group_was_raised(face, caplog) -> None:
    app = Worker(face.methods)

    @app.on("q")
    async def handle(content: str) -> None:
        raise group(ValueError("bad"), OSError("away"))

    await face.methods.produce("q", "x")
    await app.drain()
    assert "in handle" in caplog.text


def test_both_tasks_of_a_task_group_fail() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def main() -> tuple[int, str | None]:
        async with open_broker("memory:") as broker:
            app = Worker(broker)

            @app.on("q", dead=(ValueError,))
            async def handle(content: str) -> None:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(fail(AWAY))
                    tasks.create_task(fail(BAD))

            await app.send("q", "x")
            await app.drain()
            (letter,) = await broker.peek("q-dlq")
            return app.stats["q"].dead, letter.last_error

    assert anyio.run(main, backend="asyncio") == (1, "2 errors: OSError: away; ValueError: bad")


@pytest.mark.parametrize("number", [3, 300])
async def test_the_reason_of_a_group_is_bounded(face, number) -> None:
    causes = [ValueError(f"{each} {'x' * REASON_LENGTH_MAX}") for each in range(number)]
    _, reason = await after(face, group(*causes))
    assert len(reason) <= REASON_LENGTH_MAX
    assert reason.startswith(f"{number} errors: ValueError: 0 xxx")
    assert [f"ValueError: {each} xxx" in reason for each in range(3)] == [True] * 3


@pytest.mark.parametrize("kind", [Retry, Discard, DeadLetter, ValueError])
@pytest.mark.parametrize("in_thread", [False, pytest.param(True, marks=pytest.mark.tier2)])
async def test_a_class_is_no_outcome(face, kind, in_thread, caplog) -> None:
    """The message was acknowledged."""
    app = Worker(face.methods)

    async def handle(content: str) -> object:
        return kind

    def handle_in_thread(content: str) -> object:
        return kind

    app.on("q", retry=[60])(handle_in_thread if in_thread else handle)
    sent = await face.methods.produce("q", "x")
    await app.drain()
    message = await face.methods.message("q", sent.id)
    name = kind.__name__
    said = f"TypeError: the handler returned {name}, which is a class: return {name}(...), or raise it"
    assert (message.status, message.failures[-1].reason) == ("delayed", said)
    assert said in caplog.text


async def test_nor_is_it_one_in_the_list_of_a_batch(face) -> None:
    app = Worker(face.methods)

    @app.on("q", batch=2)
    async def handle(contents: list[str]) -> list[object]:
        return [None, Retry]

    for content in "ab":
        await face.methods.produce("q", content)
    await app.drain()
    assert (app.stats["q"].handled, app.stats["q"].failed) == (1, 1)


async def test_raised_a_class_is_as_good_as_an_instance(face) -> None:
    assert await after(face, Retry, retry=[5]) == ("in 5000 ms", "retry")
