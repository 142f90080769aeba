"""Handlers of every shape and with every kind of annotation."""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, NewType

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from forq_trio.model.errors import InvalidJson
from forq_trio.worker import Job, Worker, WorkerSetupError
from forq_trio.worker.payloads import Payload
from worker import postponed


async def test_a_handler_is_whatever_can_be_called(face) -> None:
    for shape, function in postponed.HANDLERS.items():
        app = Worker(face.methods)
        handler = app.on("emails")(function)
        assert handler.place.startswith(postponed.__file__ + ":")
        await face.methods.produce("emails", '{"to": "anna"}')
        postponed.SEEN.clear()
        await app.drain()
        assert [(shape, "anna", 1)] == postponed.SEEN


def elsewhere(function):
    """A decorator of another module whose wrapper is seen instead of the function."""
    wrapper = eval("lambda function: lambda *given: function(*given)", {})(function)
    return functools.update_wrapper(wrapper, function)


async def test_a_wrapped_handler_is_read_where_it_was_written(face) -> None:
    app = Worker(face.methods)
    app.on("emails")(elsewhere(postponed.in_a_thread))
    await app.send("emails", postponed.Mail("anna"))
    postponed.SEEN.clear()
    await app.drain()
    assert postponed.SEEN == [("thread", "anna", 1)]


async def test_a_plain_wrapper_of_an_async_function_is_awaited(face) -> None:
    """Its coroutine was never awaited, and the message was gone."""
    seen = []

    async def handle(mail: str) -> None:
        seen.append(mail)

    app = Worker(face.methods)
    app.on("emails")(functools.update_wrapper(lambda mail: handle(mail), handle))
    await app.send("emails", "anna")
    await app.drain()
    assert seen == ["anna"]


def generator(mail: dict):
    yield mail


async def async_generator(mail: dict):
    yield mail


async def by_name(mail: dict, *, job: Job) -> None: ...


async def in_order(*mails: dict) -> None: ...


@pytest.mark.parametrize("function", [generator, async_generator, by_name, in_order])
def test_what_would_do_nothing_is_refused_with_its_line(function) -> None:
    line = f"{__file__}:{function.__code__.co_firstlineno}: "
    with pytest.raises(WorkerSetupError) as refused:
        Worker().on("emails")(function)
    assert str(refused.value).startswith(line)


def test_a_queue_is_named_before_the_handler() -> None:
    with pytest.raises(TypeError, match="on"):
        Worker().on(generator)  # type: ignore[arg-type]


async def test_a_parameter_with_a_default_gets_the_job_only_if_it_is_one(face) -> None:
    seen = []

    async def job(mail: str, job=None) -> None:
        seen.append(type(job))

    async def annotated(mail: str, job: Job | None = None) -> None:
        seen.append(type(job))

    async def option(mail: str, dry: bool = False) -> None:
        seen.append(type(dry))

    for function in (job, annotated, option):
        app = Worker(face.methods)
        app.on("emails")(function)
        await app.send("emails", "anna")
        await app.drain()
    assert seen == [Job, Job, bool]


OwnJob = Job[int]


async def test_the_parameter_of_the_job_may_have_any_type_that_a_job_has(face) -> None:
    seen = []

    async def alias(mail: str, job: "OwnJob") -> None:
        seen.append(type(job))

    async def anything(mail: str, job: object) -> None:
        seen.append(type(job))

    async def unknown(mail: str, job: "OnlyForTypeCheckers") -> None:  # noqa: F821
        seen.append(type(job))

    async def in_batches(mails: list[str], jobs: list) -> None:
        seen.extend(map(type, jobs))

    for function in (alias, anything, unknown, in_batches):
        app = Worker(face.methods)
        app.on("emails", batch=2 if function is in_batches else None)(function)
        await app.send("emails", "anna")
        await app.drain()
    assert seen == [Job] * 4


class Address(pydantic.BaseModel):
    street: str = pydantic.Field(alias="Street", min_length=2)


class Other(pydantic.BaseModel):
    number: int = 0


@pydantic.dataclasses.dataclass
class Parcel:
    weight: int = pydantic.Field(gt=0)


@dataclass
class Plain:
    to: str


Name = NewType("Name", str)
Short = Annotated[str, msgspec.Meta(max_length=5)]


PAYLOADS = (
    (Address, Address(Street="Main"), '{"Street":"Main"}', '{"Street":"M"}'),
    (Address | None, None, "null", '{"Street":"M"}'),
    (list[Address], [Address(Street="Main")], '[{"Street":"Main"}]', '[{"Street":1}]'),
    (Parcel, Parcel(weight=2), '{"weight":2}', '{"weight":0}'),
    (Plain | None, Plain("a"), '{"to":"a"}', '{"to":1}'),
    (Annotated[Plain, "a note"], Plain("a"), '{"to":"a"}', "[]"),
    (int | str, "a", '"a"', "1.5"),
    (Short, "short", "short", "longer than five"),
    (list, [[1]], "[[1]]", "[" * 1_000 + "]" * 1_000),
    (Any, {"a": None}, '{"a":null}', '{"a":' * 1_000 + "1" + "}" * 1_000),
    (Name, "any text", "any text", None),
)
"""Annotations, what they take, as what it is sent, and a content that they do not take."""


def annotated_handler(annotation: object, seen: list[object]) -> Callable[[Any], Awaitable[None]]:
    async def handle(payload) -> None:
        seen.append(payload)

    handle.__annotations__["payload"] = annotation
    return handle


async def test_payloads_are_written_as_they_are_read(face) -> None:
    app = Worker(face.methods)
    seen: list[list[object]] = [[] for _ in PAYLOADS]
    for number, (annotation, value, content, misfit) in enumerate(PAYLOADS):
        queue = f"q{number}"
        app.on(queue, concurrency=1)(annotated_handler(annotation, seen[number]))
        sent = await app.send(queue, value)
        assert (await face.methods.message(queue, sent.id)).content == content
        if misfit is not None:
            await face.methods.produce(queue, misfit)
    await app.drain()
    assert seen == [[value] for _, value, _, _ in PAYLOADS]
    dead = [app.stats[f"q{number}"].dead for number in range(len(PAYLOADS))]
    assert dead == [misfit is not None for _, _, _, misfit in PAYLOADS]


class Reading(pydantic.BaseModel):
    value: float | None


class Counted(pydantic.BaseModel):
    value: int


def test_pydantic_is_not_given_a_number_that_it_takes_as_infinity() -> None:
    decode = Payload(Reading).decode
    assert decode('{"value": 1e308}').value == 1e308
    for text in ('{"value": 1e999}', '{"value": -1E+400}'):
        with pytest.raises(InvalidJson, match="is too large for a number"):
            decode(text)


DEEP: list[Any] = []
for _ in range(1_000):
    DEEP = [DEEP]


NOT_TAKEN = (
    (Address, {"Street": "M"}),
    (Address, Other()),
    (Address, "Main"),
    (Parcel, {"weight": 0}),
    (Short, "longer"),
    (dict, {"x": float("nan")}),
    (dict[str, float | None], {"x": float("inf")}),
    (list, DEEP),
    (Reading, Reading(value=float("nan"))),
    (dict, {"x": 10**400}),
    (Counted, Counted(value=10**400)),
)


async def test_what_the_handler_would_not_take_is_not_sent(face) -> None:
    for annotation, value in NOT_TAKEN:
        app = Worker(face.methods)
        app.on("q")(annotated_handler(annotation, []))
        with pytest.raises((TypeError, ValueError)):
            await app.send("q", value)
    assert await face.methods.queues() == []


class Unfinished(msgspec.Struct):
    to: "Nowhere"  # noqa: F821


class UnfinishedModel(pydantic.BaseModel):
    to: "Nowhere"  # noqa: F821


@pytest.mark.parametrize("annotation", [Unfinished, UnfinishedModel])
def test_a_type_that_cannot_be_read_is_refused_at_the_start(annotation) -> None:
    async def handle(payload) -> None: ...

    handle.__annotations__["payload"] = annotation
    with pytest.raises(WorkerSetupError, match="Nowhere"):
        Worker().on("q")(handle)
