"""What is no number is refused, whichever argument it is: JSON would carry null, which means "none" or "no bound"."""

import inspect
import math
from collections.abc import AsyncIterator, Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from forq_trio import AsyncForqClient, NewMessage
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import CallerError
from forq_trio.model.member_names import json_name
from forq_trio.model.messages.types import Delivery
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.model.workers.types import WorkerQueue, WorkerReport

WORKER = "00000000-0000-4000-8000-000000000001"
NO_NUMBERS = (math.nan, math.inf, -math.inf)
GIVEN: dict[str, Any] = {
    "queue": "q",
    "queues": ["q"],
    "name": "n",
    "content": "c",
    "key": "k",
    "kind": "k",
    "stages": [],
    "message_id": "00000000-0000-4000-8000-000000000000",
    "messages": [NewMessage("c")],
    "scopes": [Scope.BROWSE],
    "report": WorkerReport(WORKER, "w", "host", "1.0", 1, 0, (WorkerQueue("q", 1),)),
    "schedule": NewSchedule(queue="q", content="c", every="1h"),
    "value": 1,
}
NAMES = {"max_messages": "max", "before_sequence": "before"}
"""Arguments that requests call otherwise."""
"""Arguments that a method needs besides the one that is wrong."""


def alternatives(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from alternatives(each)
    elif hasattr(annotation, "__metadata__"):
        yield from alternatives(annotation.__origin__)
    else:
        yield annotation


def numbers_of(method: Any) -> Iterator[tuple[str, Any]]:
    """Every number that can be given to a method: the argument, and how one is made that has a number."""
    hints = get_type_hints(method, include_extras=True)
    for name, parameter in list(inspect.signature(method).parameters.items())[1:]:
        hint = hints.get(name)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for option, each in get_type_hints(get_args(hint)[0], include_extras=True).items():
                yield from wrong_values(option, each)
        else:
            yield from wrong_values(name, hint)


def wrong_values(name: str, hint: Any) -> Iterator[tuple[str, Any]]:
    for each in alternatives(hint):
        if each in (int, float):
            yield name, lambda number: number
        elif isinstance(each, type) and issubclass(each, Struct) and each is not Delivery:
            for member, inner in get_type_hints(each, include_extras=True).items():
                if any(kind in (int, float) for kind in alternatives(inner)):
                    yield f"{name}.{member}", maker(each, member, GIVEN.get(name))


def maker(kind: type[Struct], member: str, sample: Any) -> Any:
    def make(number: float) -> Any:
        given = {} if sample is None else {each: getattr(sample, each) for each in sample.__struct_fields__}
        needed = {each: 1 for each in kind.__struct_fields__ if each not in given and is_needed(kind, each)}
        return kind(**needed | given | {member: number})

    return make


def is_needed(kind: type[Struct], member: str) -> bool:
    place = kind.__struct_fields__.index(member) - len(kind.__struct_fields__) + len(kind.__struct_defaults__)
    return place < 0 or kind.__struct_defaults__[place].__class__.__name__ == "NODEFAULT"


CASES = {
    method: list(numbers_of(function))
    for method, function in inspect.getmembers(AsyncForqClient, inspect.isfunction)
    if not method.startswith("_") and list(numbers_of(function))
}
"""For each method every number that it takes."""


async def ask(face, method: str, arguments: dict[str, Any]) -> None:
    function = getattr(face.methods, method)
    if method == "lease_page":
        await face.methods.open_consumer("q", "n")
    if "dead_letters" in method or method in ("start_redrive", "start_deletion"):
        arguments.setdefault("queue", "q-dlq")
    for name, parameter in inspect.signature(function).parameters.items():
        if (
            parameter.default is parameter.empty
            and parameter.kind < parameter.VAR_KEYWORD
            and name not in arguments
        ):
            arguments[name] = GIVEN.get(name, 1 if "int" in str(parameter.annotation) else "x")
    answer = function(**arguments)
    if isinstance(answer, AsyncIterator):
        async for _ in answer:
            break
    else:
        await answer


def test_there_are_such_arguments() -> None:
    named = {f"{method}-{argument}" for method, cases in CASES.items() for argument, _ in cases}
    assert len(named) > 60
    assert {"produce-delay_ms", "configure-max_messages", "create_token-expires_at"} <= named


async def test_nan_and_infinities_are_refused_by_name(face) -> None:
    wrong = []
    for method, argument, make in ((method, *each) for method, cases in CASES.items() for each in cases):
        last = argument.rpartition(".")[2]
        for number in NO_NUMBERS:
            try:
                await ask(face, method, {argument.partition(".")[0]: make(number)})
            except CallerError as refused:
                if not any(word in str(refused) for word in (last, json_name(last), NAMES.get(last, last))):
                    wrong.append(f"{method}({argument}={number}): {refused}")
            else:
                wrong.append(f"{method}({argument}={number}) is taken")
    assert wrong == []
