"""What is wrong is told before anything is received, with the place."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from forq_trio import open_blocking_broker, open_broker
from forq_trio.outbox import Relay
from forq_trio.worker import Worker, WorkerSetupError


async def handle(mail: dict) -> None: ...


def line_of(function: Callable[..., object]) -> str:
    return f"{__file__}:{inspect.getsourcelines(function)[1]}: "


def test_a_second_handler_of_a_queue_is_refused_with_both_places() -> None:
    app = Worker()
    app.on("emails")(handle)

    async def another(mail: dict) -> None: ...

    with pytest.raises(WorkerSetupError) as refused:
        app.on("emails")(another)
    assert str(refused.value).startswith(line_of(another))
    assert line_of(handle).removesuffix(": ") in str(refused.value)


async def without_annotation(mail) -> None: ...


async def unreadable(mail: complex) -> None: ...


async def unknown(mail: "Nothing") -> None: ...  # noqa: F821


async def without_parameter() -> None: ...


async def with_three(mail: dict, job: object, more: object) -> None: ...


async def with_two_values(to: str, text: str) -> None: ...


async def with_two_texts(to: str, headers: "dict[str, str]") -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (
            with_two_values,
            "the second parameter gets the Job, and 'text' is none: several values are one payload",
        ),
        (with_two_texts, "the second parameter gets the Job, and 'headers' is none"),
        (without_annotation, "the parameter 'mail' has no annotation"),
        (unreadable, "cannot be read as"),
        (unknown, "'Nothing' cannot be read"),
        (without_parameter, "takes a payload"),
        (with_three, "takes a payload"),
    ],
)
def test_a_handler_that_cannot_be_called_is_refused(function, told) -> None:
    with pytest.raises(WorkerSetupError, match=told) as refused:
        Worker().on("emails")(function)
    assert str(refused.value).startswith(line_of(function))


OUT_OF_RANGE: tuple[dict[str, Any], ...] = (
    {"concurrency": 0},
    {"concurrency": 1_001},
    {"concurrency": True},
    {"batch": 101},
    {"lease": 0.5},
    {"lease": 43_201},
    {"lease": float("nan")},
    {"timeout": 0},
    {"weight": 0},
    {"retry": "5"},
    {"retry": [-1]},
    {"retry": {"Exception": [1]}},
    {"retry": 5},
    {"dead": "ValueError"},
    {"dead": (KeyboardInterrupt,)},
    {"dead": [ValueError]},
    {"batch": 5},
    {"where": {"region": {"like": "e%"}}},
    {"where": "region=eu"},
)


def test_options_out_of_range_are_refused() -> None:
    for options in OUT_OF_RANGE:
        (name,) = options
        with pytest.raises(WorkerSetupError, match=name):
            Worker().on("emails", **options)(handle)


def test_a_list_in_place_of_a_tuple_is_named_as_it_was_written() -> None:
    with pytest.raises(
        WorkerSetupError, match=r"dead: an exception type or a tuple of them, not \[<class 'ValueError'>\]"
    ):
        Worker().on("emails", dead=[ValueError])(handle)  # type: ignore[call-overload]


@pytest.mark.parametrize("given", ["10s", -1, float("nan")])
def test_how_long_a_worker_drains_is_a_number_of_seconds(given: Any) -> None:
    with pytest.raises(ValueError, match=f"drain_seconds: a number of seconds from 0, not {given!r}"):
        Worker(drain_seconds=given)


def test_an_invalid_queue_is_refused() -> None:
    with pytest.raises(WorkerSetupError, match="queue"):
        Worker().on("no such name")(handle)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(TypeError, match="retries"):
        Worker().on("emails", retries=3)  # type: ignore[call-arg]


def test_a_worker_without_handlers_does_not_run() -> None:
    with pytest.raises(WorkerSetupError, match="no handler"):
        Worker("memory:").run()


def test_every_queue_needs_a_slot() -> None:
    app = Worker("memory:", concurrency=1)
    app.on("a")(handle)
    app.on("b")(handle)
    with pytest.raises(WorkerSetupError, match="concurrency"):
        app.run()


async def test_a_database_of_postgresql_is_a_source(database) -> None:
    app = Worker(database)
    got = []

    @app.on("emails")
    async def note(mail: dict[str, str]) -> None:
        got.append(mail["to"])

    async with open_broker(database) as broker:
        await broker.produce("emails", '{"to": "me"}')
    await app.serve(stop_when_empty=True)
    assert got == ["me"]


async def test_an_unknown_source_is_refused() -> None:
    app = Worker("redis://me:hunter2@localhost")
    app.on("a")(handle)
    with pytest.raises(ValueError, match="redis") as refused:
        await app.serve()
    assert "hunter2" not in str(refused.value)
    with pytest.raises(RuntimeError, match="not open"):
        await app.send("a", {})


async def test_a_handler_is_still_a_function() -> None:
    @Worker().on("numbers")
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert await double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice as much.")


def test_a_source_that_blocks_is_refused() -> None:
    with open_blocking_broker("memory:") as broker:
        with pytest.raises(TypeError, match="an AsyncForqClient, not BlockingBroker"):
            Worker(broker)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="an AsyncForqClient, not BlockingBroker"):
            Relay("shop.db", broker)  # type: ignore[arg-type]
