"""Every body and answer of the document has an example, which the server's own types take."""

from collections.abc import Iterator
from typing import Any

import msgspec
from jsonschema import Draft202012Validator

from forq_trio.http.forq_api.examples import ANSWERS, BODIES
from support.forq_api import Api
from support.openapi_words import closed

from .conftest import Described

WITHOUT = {"metrics", "openapi", "openapiAtRoot"}
"""Their answers speak for themselves."""


def examples_of(operations: list[Described]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The contents that may have an example, each with the name of its operation and what it is."""
    for each in operations:
        body = each.operation.get("requestBody", {})
        yield from ((f"{each.name} body", content) for content in body.get("content", {}).values())
        for status, response in each.operation["responses"].items():
            if int(status) < 400 and each.name not in WITHOUT:
                contents = response.get("content", {}).values()
                yield from ((f"{each.name} {status}", content) for content in contents)


def test_every_body_and_answer_has_an_example(operations):
    missing = [name for name, content in examples_of(operations) if "example" not in content]
    assert missing == []


def test_every_example_fits_its_schema(operations, document):
    for name, content in examples_of(operations):
        schema = closed({"components": document["components"], **content["schema"]})
        problems = [error.message for error in Draft202012Validator(schema).iter_errors(content["example"])]
        assert problems == [], name


async def test_no_example_has_a_member_that_its_type_does_not_know(api: Api):
    """Answers may get members, so the schema lets any pass."""
    for route in api.routes:
        operation = route.operation
        if operation.name in BODIES:
            msgspec.json.decode(msgspec.json.encode(BODIES[operation.name]), type=operation.body)
        if operation.name in ANSWERS:
            (body,) = {each.body for each in operation.answers if each.body is not type(None)}
            assert unknown_members(ANSWERS[operation.name], body) == set(), operation.name


def unknown_members(value: Any, kind: Any) -> set[str]:
    """The members of an example that its type drops, or that have another value there."""
    known = msgspec.json.decode(
        msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value), type=kind))
    )
    if isinstance(value, list):
        return set()
    return {name for name in value if value[name] is not None and name not in known}


def test_no_example_is_left_of_what_is_gone(operations):
    names = {each.name for each in operations}
    assert BODIES.keys() | {name.partition(" ")[0] for name in ANSWERS} <= names
