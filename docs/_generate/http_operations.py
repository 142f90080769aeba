"""The section of an operation: a command that calls it, its parameters, its body, its answers and its errors."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from docs._generate.http_types import default_of, kind_of, members_of
from docs._generate.markdown import cell, code, prose, table
from forq_trio.http.forq_api.openapi_schemas import KNOWN_WORDS

WIDTH = 110
IN_PATHS = {
    "queue": "orders",
    "messageId": "$ID",
    "key": "customer%2F41",
    "redriveId": "$REDRIVE",
    "schedule": "daily-report",
    "consumer": "archive",
    "number": "9",
    "stage": "load-1",
    "page": "0",
    "app": "loader",
    "outbox": "shop",
    "batch": "import-7",
    "workerId": "$WORKER",
    "name": "billing",
}
"""Values in the paths of the commands that are shown."""

USUAL = {
    "of its key": ("unauthorized", "forbidden", "too_many_requests"),
    "of its form": (
        "bad_request.query.unknown_parameter",
        "bad_request.queue.invalid_name",
        "bad_request.body.invalid",
        "bad_request.body.unknown_field",
        "bad_request.content_encoding.unknown",
    ),
    "of the state of the server": (
        "internal",
        "forq.outcome_unknown",
        "forq.unhealthy",
        "forq.storage_full",
        "forq.storage_lost",
        "forq.overloaded",
        "forq.stopping",
        "forq.read_timeout",
    ),
}
"""The codes that most operations may answer, by what of a request they are about; operations list only others."""


class Operation(NamedTuple):
    """An operation of the document with its place."""

    method: str
    path: str
    declared: dict[str, Any]

    @property
    def heading(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def anchor(self) -> str:
        """The fragment of a link to the heading."""
        return re.sub(r"[^\w\- ]", "", self.heading).lower().replace(" ", "-")


def section(operation: Operation, schemas: dict[str, Any]) -> Iterator[str]:
    declared = operation.declared
    yield f"### {operation.heading}"
    scopes = {scope for each in declared["security"] for scopes in each.values() for scope in scopes}
    if scopes:
        yield f"Scope: `{min(scopes)}`"
    elif declared["security"]:
        yield "Takes no token."
    else:
        yield "No key."
    yield prose(
        f"**{declared['summary']}.** {declared.get('description', '')}".replace("?.**", "?**").strip()
    )
    yield f"```sh\n{_command(operation)}\n```"
    if parameters := declared.get("parameters"):
        rows = [
            (
                code(each["name"]),
                each["in"],
                kind_of(each["schema"], each["name"]),
                cell(each["description"]),
                default_of(each),
            )
            for each in parameters
        ]
        yield table(("parameter", "in", "type", "meaning", "without it"), rows)
    if "requestBody" in declared:
        yield from _body(declared["requestBody"], schemas)
    yield from _answers(declared["responses"])
    yield _errors(declared["responses"])


def _body(body: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    ((content_type, content),) = body["content"].items()
    lines = " a line" if content_type.endswith("ndjson") else ""
    absent = "" if body["required"] else " It may be left out."
    yield f"The body is {kind_of(content['schema'])}{lines} (`{content_type}`).{absent}"
    yield members_of(schemas[content["schema"]["$ref"].rpartition("/")[2]], sent=True)


def _answers(responses: dict[str, Any]) -> Iterator[str]:
    found = [(status, response) for status, response in responses.items() if int(status) < 400]
    lines = []
    for status, response in found:
        line = f"- {status}: {prose(response['description'])}"
        for content_type, content in response.get("content", {}).items():
            kind = "" if content_type == "application/json" else f", as `{content_type}`"
            line += f" {kind_of(content['schema'])}{kind}"
        lines.append(line)
        for name, header in response.get("headers", {}).items():
            lines.append(f"  - `{name}`: {prose(header['description'])}")
    yield "\n".join(lines)
    for _, response in found:
        for content_type, content in response.get("content", {}).items():
            if "example" in content:
                text = shown(content["example"])
                if "\n" in text and content_type.endswith("ndjson"):
                    yield "(One line, broken here.)"
                yield f"```json\n{text}\n```"


def _errors(responses: dict[str, Any]) -> str:
    usual = {each for codes in USUAL.values() for each in codes}
    own = [
        f"- {status}: {', '.join(map(code, codes))}"
        for status, found in sorted(_codes(responses).items())
        if (codes := [each for each in found if each not in usual])
    ]
    if not own:
        return "Errors: [the usual ones](http-errors.md)."
    return "\n".join(["Errors, in addition to [the usual ones](http-errors.md):", "", *own])


def _codes(responses: dict[str, Any]) -> dict[str, list[str]]:
    """The error codes by status."""
    found: dict[str, list[str]] = {}
    for status, response in responses.items():
        for content in response.get("content", {}).values() if int(status) >= 400 else ():
            found[status] = content["schema"]["properties"]["code"][KNOWN_WORDS]
    return found


def _command(operation: Operation) -> str:
    """A line for a shell where URL is the server and KEY its header."""
    values = dict(IN_PATHS)
    if "/dead-letters" in operation.path:
        values["queue"] += "-dlq"
    method, body = operation.method, operation.declared.get("requestBody")
    words = ["curl"]
    if operation.declared["security"]:
        words.append('-H "$KEY"')
    if method not in ("GET", "POST") or (method == "POST" and body is None):
        words.append(f"-X {method}")
    path = re.sub(r"{(\w+)}", lambda name: values[name[1]], operation.path)
    words.append(f'"$URL{path}{_query(operation)}"')
    if body is not None:
        ((kind, content),) = body["content"].items()
        option = "--data-binary" if kind.endswith("ndjson") else "-d"
        words.append(f"{option} '{json.dumps(content['example'], ensure_ascii=False)}'")
    line = " ".join(words)
    if len(line) > WIDTH and words[-1].startswith("-"):
        line = " ".join(words[:-1]) + " \\\n  " + words[-1]
    return line


def _query(operation: Operation) -> str:
    """The query, where one is needed."""
    names = {each["name"] for each in operation.declared.get("parameters", []) if each["in"] == "query"}
    return "?confirm=orders" if "confirm" in names else ""


def shown(value: Any, indent: str = "") -> str:
    """JSON with as many members on a line as fit."""
    text = json.dumps(value, ensure_ascii=False)
    if len(indent + text) <= WIDTH or not isinstance(value, (dict, list)):
        return text
    deeper = indent + " "
    if isinstance(value, dict):
        first, last = "{", "}"
        items = [f"{json.dumps(key)}: {shown(each, deeper)}" for key, each in value.items()]
    else:
        first, last = "[", "]"
        items = [shown(each, deeper) for each in value]
    lines: list[str] = []
    for item in items:
        if lines and "\n" not in lines[-1] + item and len(deeper + lines[-1] + item) + 2 <= WIDTH:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return first + f",\n{deeper}".join(lines) + last
