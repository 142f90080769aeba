"""The HTTP reference: a page for each topic, one for types and one for error codes; and the OpenAPI document.

Everything is in the declarations of the endpoints, of their topics, and of the types of their bodies and answers;
examples are in forq_trio/http/forq_api/examples. A server that is there for the tests is asked for the document.
"""

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import trio

from docs._generate.http_operations import USUAL, Operation, section
from docs._generate.http_types import kind_of, members_of
from docs._generate.markdown import code, page, prose, table
from forq_trio.http.forq_api.openapi import build_document
from forq_trio.http.forq_api.refusals import TRANSPORT_CODES
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.forq_error import REASONS

ROOT = Path(__file__).parents[2]
SOURCE = "the declarations in forq_trio"
ALL = "[All operations](http.md)"
PAGES = {
    "messages": ("Messages", ("Producer", "Consumer")),
    "keys": ("Keys", ("Keys",)),
    "queues": ("Queues and their settings", ("Queues", "Administration")),
    "schedules": ("Schedules", ("Schedules",)),
    "batches": ("Batches", ("Batches",)),
    "dead-letters": ("Dead letters", ("Dead letters",)),
    "logs": ("History and events", ("History", "Events")),
    "pipelines": ("Pipelines and outboxes", ("Pipelines", "Consumers of pipelines", "Outboxes")),
    "server": ("Workers, tokens and the server", ("Workers", "Processes", "Access", "Operation")),
}
"""The pages, each with its title and its tags."""


@cache
def read_document() -> dict[str, Any]:
    """The document as the server answers it, with the version that pyproject.toml has."""
    from support.forq_api import open_api

    async def read() -> dict[str, Any]:
        async with open_api() as api:
            return build_document(
                api.routes, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
            )

    found: dict[str, Any] = json.loads(json.dumps(trio.run(read)))
    return found


def document_text() -> str:
    """The text of docs/openapi.json."""
    return json.dumps(read_document(), indent=1, ensure_ascii=False) + "\n"


def pages() -> Iterator[tuple[str, str]]:
    document = read_document()
    operations = list(_operations(document))
    yield "http.md", page("HTTP reference", SOURCE, *_overview(operations))
    for name, (title, tags) in PAGES.items():
        yield f"http-{name}.md", page(title, SOURCE, ALL, *_topic(document, tags, operations))
    types = _types(document["components"]["schemas"], operations)
    yield "http-types.md", page("Types of bodies and answers", SOURCE, ALL, *types)
    yield "http-errors.md", page("Error codes", SOURCE, ALL, *_errors())


def _operations(document: dict[str, Any]) -> Iterator[Operation]:
    shared = document["components"]["responses"]
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            responses = {
                status: shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
                for status, each in found["responses"].items()
            }
            yield Operation(method.upper(), path, found | {"responses": responses})


def _overview(operations: list[Operation]) -> Iterator[str]:
    yield (
        "Every operation of the API. [The guide](../api.md) says what holds for all of them: keys, bodies, errors, "
        "waits, pages and limits. [Types](http-types.md) has what bodies and answers are made of, "
        "[error codes](http-errors.md) all codes. The same for programs is the [OpenAPI document](../openapi.json), "
        "which a server also answers at `/openapi.json`."
    )
    for name, (title, tags) in PAGES.items():
        rows = [
            (f"[{each.heading}](http-{name}.md#{each.anchor})", each.declared["summary"])
            for tag in tags
            for each in operations
            if tag in each.declared["tags"]
        ]
        yield f"## [{title}](http-{name}.md)"
        yield table(("operation", ""), rows)


def _topic(document: dict[str, Any], tags: tuple[str, ...], operations: list[Operation]) -> Iterator[str]:
    said = {tag["name"]: tag["description"] for tag in document["tags"]}
    ours = {tag: [each for each in operations if tag in each.declared["tags"]] for tag in tags}
    links = [
        f"- [{each.heading}](#{each.anchor}): {each.declared['summary']}"
        for tag in tags
        for each in ours[tag]
    ]
    yield "\n".join(links)
    for tag in tags:
        yield f"## {tag}" if len(tags) > 1 else "## Operations"
        yield prose(said[tag])
        for each in ours[tag]:
            yield from section(each, document["components"]["schemas"])


def _types(schemas: dict[str, Any], operations: list[Operation]) -> Iterator[str]:
    sent = _sent_types(operations, schemas)
    yield (
        "Times are milliseconds since the Unix epoch, durations milliseconds. Answers have all of their members, "
        "unless it says of one that it may be absent. Where an answer has one of several words, later servers may have "
        "further ones: for programs it is a text, whose words the [OpenAPI document](../openapi.json) has as "
        "`x-extensible-enum`."
    )
    yield " · ".join(f"[{name}](#{name.lower()})" for name in sorted(schemas))
    for name in sorted(schemas):
        schema = schemas[name]
        yield f"## {name}"
        yield prose(schema.get("description", ""))
        if "enum" in schema:
            yield f"One of {kind_of(schema)}."
        if "properties" in schema:
            yield members_of(schema, sent=name in sent)


def _types_in(value: Any) -> set[str]:
    """The names of the types to which a part of the document refers."""
    if isinstance(value, list):
        return {name for each in value for name in _types_in(each)}
    if not isinstance(value, dict):
        return set()
    named = {value["$ref"].rpartition("/")[2]} if "$ref" in value else set()
    return named.union(*(_types_in(each) for each in value.values()))


def _sent_types(operations: list[Operation], schemas: dict[str, Any]) -> set[str]:
    """The types that bodies have, at any depth."""
    found: set[str] = set()
    pending = {name for each in operations for name in _types_in(each.declared.get("requestBody"))}
    while pending:
        found |= pending
        pending = {name for each in pending for name in _types_in(schemas[each])} - found
    return found


def _errors() -> Iterator[str]:
    yield (
        "[The guide](../api.md#errors) says how an error is answered. An operation lists the codes of its own; these "
        "are usual, and left out there. The [OpenAPI document](../openapi.json) has all of each operation."
    )
    yield "\n".join(f"- {about}: {', '.join(map(code, codes))}" for about, codes in USUAL.items())
    reasons = set(REASONS.values()) - {*InvalidSetting.members.values()}
    rows = [(each.status, each.code, each.meaning) for each in reasons]
    rows.append(
        (400, "bad_request.settings.…", "The setting that the code ends in is not valid; `message` says why.")
    )
    yield _codes(rows)
    yield "## Before a request reaches an operation"
    yield "These concern HTTP itself. [The guide](../api.md#http2) says what is different over HTTP/2."
    yield _codes([(status, *said) for status, said in TRANSPORT_CODES.items() if status != 500])


def _codes(rows: list[tuple[int, str, str]]) -> str:
    """A table of codes, by status."""
    return table(
        ("code", "status", "when"),
        [(code(name), str(status), meaning) for status, name, meaning in sorted(rows)],
    )
