"""Writes docs/openapi.json, and the pages docs/reference/http*.md of it: `python script/http_reference.py`.

Everything is in the declarations of the endpoints, of their topics, and of the types of their bodies and answers;
examples are in forq_trio/http/forq_api/examples. A server that is there for the tests is asked for the document, so
this needs what script/test installs.
"""

import json
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # where the package is, and a server without sockets

from docs._generate.markdown import table  # noqa: E402

WIDTH = 110
KNOWN_WORDS = "x-extensible-enum"
"""What texts of answers may be today; later servers answer further words."""
MADE = "Made by `python script/http_reference.py` from the declarations in forq_trio: change those."

PAGES = {
    "messages": ("Messages", ("Producer", "Consumer")),
    "keys": ("Keys", ("Keys",)),
    "queues": ("Queues and their settings", ("Queues", "Administration")),
    "schedules": ("Schedules", ("Schedules",)),
    "dead-letters": ("Dead letters", ("Dead letters",)),
    "logs": ("History and events", ("History", "Events")),
    "pipelines": ("Pipelines and outboxes", ("Pipelines", "Consumers of pipelines", "Outboxes")),
    "server": ("Workers, tokens and the server", ("Workers", "Processes", "Access", "Operation")),
}
"""The pages, each with its title and its tags."""

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
    "workerId": "$WORKER",
    "name": "billing",
}
"""Values in the paths of the commands that are shown."""

KINDS = {"string": "text", "object": "object", "array": "list", "boolean": "true or false", "null": "null"}
UNITS = (("Ms", "milliseconds"), ("Seconds", "seconds"), ("ytes", "bytes"))
"""By the end of a name, the unit of the number."""
SETTINGS = "bad_request.settings."
EPOCH = "Milliseconds since the Unix epoch."
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


class Entry(NamedTuple):
    """An operation of the document with its place."""

    method: str
    path: str
    operation: dict[str, Any]

    @property
    def heading(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def anchor(self) -> str:
        """The fragment of a link to the heading."""
        return re.sub(r"[^\w\- ]", "", self.heading).lower().replace(" ", "-")


def read_document() -> dict[str, Any]:
    """The document as the server answers it, with the version that pyproject.toml has."""
    import trio

    from forq_trio.http.forq_api.openapi import build_document
    from support.forq_api import open_api

    async def read() -> dict[str, Any]:
        async with open_api() as api:
            return build_document(
                api.routes, tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
            )

    return json.loads(json.dumps(trio.run(read)))


def products() -> dict[Path, str]:
    """The text of each file."""
    from forq_trio.http.forq_api.refusals import TRANSPORT_CODES
    from forq_trio.model.errors import InvalidSetting
    from forq_trio.model.forq_error import REASONS

    document = read_document()
    entries = list(entries_of(document))
    made = {"http": overview(entries)}
    for name, (title, tags) in PAGES.items():
        made[f"http-{name}"] = topic_page(document, title, tags, entries)
    made["http-types"] = types_page(document["components"]["schemas"], entries)
    rows = {SETTINGS + "…": (400, "The setting that the code ends in is not valid; `message` says why.")}
    rows |= {
        each.code: (each.status, each.meaning)
        for each in set(REASONS.values()) - {*InvalidSetting.members.values()}
    }
    made["http-errors"] = errors_page(rows, TRANSPORT_CODES)
    written = {DOCS / "reference" / f"{name}.md": text for name, text in made.items()}
    return {DOCS / "openapi.json": json.dumps(document, indent=1, ensure_ascii=False) + "\n"} | written


def entries_of(document: dict[str, Any]) -> Iterator[Entry]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            shared = document["components"]["responses"]
            responses = {
                status: shared[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
                for status, each in operation["responses"].items()
            }
            yield Entry(method, path, operation | {"responses": responses})


def page_of(entry: Entry) -> str:
    (tag,) = entry.operation["tags"]
    return next(f"http-{name}.md" for name, (_, tags) in PAGES.items() if tag in tags)


def overview(entries: list[Entry]) -> str:
    blocks = [
        "# HTTP reference",
        MADE,
        "Every operation of the API. [The guide](../api.md) says what holds for all of them: keys, bodies, errors, "
        "waits, pages and limits. [Types](http-types.md) has what bodies and answers are made of, "
        "[error codes](http-errors.md) all codes. The same for programs is the [OpenAPI document](../openapi.json), "
        "which a server also answers at `/openapi.json`.",
    ]
    for name, (title, tags) in PAGES.items():
        rows = [
            (f"[{entry.heading}](http-{name}.md#{entry.anchor})", entry.operation["summary"])
            for tag in tags
            for entry in entries
            if tag in entry.operation["tags"]
        ]
        blocks += [f"## [{title}](http-{name}.md)", table(("operation", ""), rows)]
    return "\n\n".join(blocks) + "\n"


def topic_page(document: dict[str, Any], title: str, tags: tuple[str, ...], entries: list[Entry]) -> str:
    said = {tag["name"]: tag["description"] for tag in document["tags"]}
    ours = {tag: [entry for entry in entries if tag in entry.operation["tags"]] for tag in tags}
    links = [
        f"- [{entry.heading}](#{entry.anchor}): {entry.operation['summary']}"
        for tag in tags
        for entry in ours[tag]
    ]
    blocks = [f"# {title}", f"{MADE} [All operations](http.md)", "\n".join(links)]
    for tag in tags:
        blocks += [f"## {tag}" if len(tags) > 1 else "## Operations", prose(said[tag])]
        for entry in ours[tag]:
            blocks += operation_blocks(entry, document["components"]["schemas"])
    return "\n\n".join(blocks) + "\n"


def operation_blocks(entry: Entry, schemas: dict[str, Any]) -> Iterator[str]:
    operation = entry.operation
    yield f"### {entry.heading}"
    scopes = {scope for each in operation["security"] for scopes in each.values() for scope in scopes}
    if scopes:
        yield f"Scope: `{min(scopes)}`"
    elif operation["security"]:
        yield "Takes no token."
    else:
        yield "No key."
    yield prose(
        f"**{operation['summary']}.** {operation.get('description', '')}".replace("?.**", "?**").strip()
    )
    yield f"```sh\n{command(entry)}\n```"
    if parameters := operation.get("parameters"):
        rows = [
            (
                f"`{each['name']}`",
                each["in"],
                kind_of(each["schema"], each["name"]),
                cell(each["description"]),
                default_of(each),
            )
            for each in parameters
        ]
        yield table(("parameter", "in", "type", "meaning", "without it"), rows)
    if "requestBody" in operation:
        yield from body_blocks(operation["requestBody"], schemas)
    yield from answer_blocks(operation["responses"])
    yield errors_of(operation["responses"])


def body_blocks(body: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    ((content_type, content),) = body["content"].items()
    lines = " a line" if content_type.endswith("ndjson") else ""
    absent = "" if body["required"] else " It may be left out."
    yield f"The body is {kind_of(content['schema'])}{lines} (`{content_type}`).{absent}"
    yield members_of(schemas[content["schema"]["$ref"].rpartition("/")[2]], sent=True)


def answer_blocks(responses: dict[str, Any]) -> Iterator[str]:
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


def codes_of(responses: dict[str, Any]) -> dict[str, list[str]]:
    """The error codes by status."""
    found: dict[str, list[str]] = {}
    for status, response in responses.items():
        for content in response.get("content", {}).values() if int(status) >= 400 else ():
            found[status] = content["schema"]["properties"]["code"][KNOWN_WORDS]
    return found


def errors_of(responses: dict[str, Any]) -> str:
    usual = {code for codes in USUAL.values() for code in codes}
    own = [
        f"- {status}: {', '.join(f'`{code}`' for code in codes)}"
        for status, found in sorted(codes_of(responses).items())
        if (codes := [code for code in found if code not in usual])
    ]
    if not own:
        return "Errors: [the usual ones](http-errors.md)."
    return "\n".join(["Errors, in addition to [the usual ones](http-errors.md):", "", *own])


def command(entry: Entry) -> str:
    """A line for a shell where URL is the server and KEY its header."""
    values = dict(IN_PATHS)
    if "/dead-letters" in entry.path:
        values["queue"] += "-dlq"
    method = entry.method.upper()
    words = ["curl"]
    if entry.operation["security"]:
        words.append('-H "$KEY"')
    body = entry.operation.get("requestBody")
    if method not in ("GET", "POST") or (method == "POST" and body is None):
        words.append(f"-X {method}")
    words.append('"$URL' + re.sub(r"{(\w+)}", lambda name: values[name[1]], entry.path) + wanted(entry) + '"')
    if body is not None:
        ((kind, content),) = body["content"].items()
        option = "--data-binary" if kind.endswith("ndjson") else "-d"
        words.append(f"{option} '{json.dumps(content['example'], ensure_ascii=False)}'")
    line = " ".join(words)
    if len(line) > WIDTH and words[-1].startswith("-"):
        line = " ".join(words[:-1]) + " \\\n  " + words[-1]
    return line


def wanted(entry: Entry) -> str:
    """The query, where one is needed."""
    names = {each["name"] for each in entry.operation.get("parameters", []) if each["in"] == "query"}
    return "?confirm=orders" if "confirm" in names else ""


def types_page(schemas: dict[str, Any], entries: list[Entry]) -> str:
    sent = sent_types(entries, schemas)
    blocks = [
        "# Types of bodies and answers",
        f"{MADE} [All operations](http.md)",
        "Times are milliseconds since the Unix epoch, durations milliseconds. Answers have all of their members, "
        "unless it says of one that it may be absent. Where an answer has one of several words, later servers may have "
        "further ones: for programs it is a text, whose words the [OpenAPI document](../openapi.json) has as "
        "`x-extensible-enum`.",
        " · ".join(f"[{name}](#{name.lower()})" for name in sorted(schemas)),
    ]
    for name in sorted(schemas):
        schema = schemas[name]
        blocks += [f"## {name}", prose(schema.get("description", ""))]
        if "enum" in schema:
            blocks.append(f"One of {kind_of(schema)}.")
        if "properties" in schema:
            blocks.append(members_of(schema, sent=name in sent))
    return "\n\n".join(filter(None, blocks)) + "\n"


def members_of(schema: dict[str, Any], *, sent: bool) -> str:
    """The table of the members of a type. sent: it is one of bodies; others are only answered."""
    needed = schema.get("required", [])
    rows = []
    for member, each in schema["properties"].items():
        meaning = cell(each.get("description", "").replace(EPOCH, ""))
        default = default_of({"schema": each, "required": member in needed})
        if sent:
            rows.append((f"`{member}`", kind_of(each, member), meaning, default))
        else:
            absent = "" if default == "required" else f" May be absent{default and f': {default}'}."
            rows.append((f"`{member}`", kind_of(each, member), meaning + absent))
    return table(("member", "type", "meaning", "without it")[: 4 if sent else 3], rows)


def types_in(value: Any) -> set[str]:
    """The names of the types to which a part of the document refers."""
    if isinstance(value, list):
        return {name for each in value for name in types_in(each)}
    if not isinstance(value, dict):
        return set()
    named = {value["$ref"].rpartition("/")[2]} if "$ref" in value else set()
    return named.union(*(types_in(each) for each in value.values()))


def sent_types(entries: list[Entry], schemas: dict[str, Any]) -> set[str]:
    """The types that bodies have, at any depth."""
    found: set[str] = set()
    pending = {name for entry in entries for name in types_in(entry.operation.get("requestBody"))}
    while pending:
        found |= pending
        pending = {name for each in pending for name in types_in(schemas[each])} - found
    return found


def errors_page(rows: dict[str, tuple[int, str]], of_http: dict[int, tuple[str, str]]) -> str:
    listed = [
        (f"`{code}`", str(status), meaning)
        for code, (status, meaning) in sorted(rows.items(), key=lambda row: (row[1][0], row[0]))
    ]
    before = [
        (f"`{code}`", str(status), meaning)
        for status, (code, meaning) in sorted(of_http.items())
        if status != 500
    ]
    blocks = [
        "# Error codes",
        f"{MADE} [All operations](http.md)",
        "[The guide](../api.md#errors) says how an error is answered. An operation lists the codes of its own; these "
        "are usual, and left out there. The [OpenAPI document](../openapi.json) has all of each operation.",
        "\n".join(f"- {about}: {', '.join(f'`{code}`' for code in codes)}" for about, codes in USUAL.items()),
        table(("code", "status", "when"), listed),
        "## Before a request reaches an operation",
        "These concern HTTP itself. [The guide](../api.md#http2) says what is different over HTTP/2.",
        table(("code", "status", "when"), before),
    ]
    return "\n\n".join(blocks) + "\n"


def kind_of(schema: dict[str, Any], name: str = "") -> str:
    """The type of a value in a few words, with its bounds."""
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        return f"[{kind}](http-types.md#{kind.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(kind_of(each, name) for each in schema[several])
    if "enum" in schema or KNOWN_WORDS in schema:
        words = schema.get("enum") or [*schema[KNOWN_WORDS], *([None] if "null" in schema["type"] else [])]
        *others, last = ["null" if each is None else f"`{each}`" for each in words]
        return f"{', '.join(others)} or {last}" if others else last
    kinds = schema.get("type", "any")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return " or ".join(one_kind(kind, schema, name) for kind in kinds)


def one_kind(kind: str, schema: dict[str, Any], name: str) -> str:
    if kind in ("integer", "number"):
        if EPOCH in schema.get("description", ""):
            return "time"
        unit = next((unit for end, unit in UNITS if name.endswith(end)), kind)
        return unit + numbers(schema, "minimum", "maximum")
    if kind == "string":
        lengths = numbers(schema, "minLength", "maxLength")
        return (
            "UUID" if schema.get("format") == "uuid" else f"text{lengths} characters" if lengths else "text"
        )
    if kind == "array":
        items = schema.get("items")
        several = numbers(schema, "minItems", "maxItems")
        return (
            "list"
            + (f" of {kind_of(items, name)}" if items else "")
            + (f"{several} of them" if several else "")
        )
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {kind_of(schema['additionalProperties'])}" + numbers(schema, "", "maxProperties")
    return KINDS[kind]


def numbers(schema: dict[str, Any], low: str, high: str) -> str:
    least, most = schema.get(low), schema.get(high)
    if most is not None and most >= 2**53 - 1:
        most = None
    if least is not None and most is not None:
        return f", {least:,} to {most:,}"
    if most is not None:
        return f", at most {most:,}"
    return "" if not least else f", at least {least:,}"


def default_of(each: dict[str, Any]) -> str:
    schema = each["schema"]
    if each.get("required"):
        return "required" if "default" not in schema else ""
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"


def prose(text: str) -> str:
    """A text of the document as Markdown of these pages: settings as code, and pages of docs as links."""
    text = re.sub(r"(?<![`\w])(FORQ_[A-Z_]+(?:=\w+)?)(?![`\w])", r"`\1`", text)
    text = re.sub(r"(?<![`\w])(X-Forq-[A-Za-z-]+)(?![`\w])", r"`\1`", text)
    text = re.sub(r"(?<![\w/`])(?<!\]\()docs/([\w-]+\.md)(#[\w-]+)?", link, text)
    paragraphs = []
    for paragraph in text.split("\n\n"):
        for part in paragraph.split("\n"):
            paragraphs.append(textwrap.fill(part, 120, break_long_words=False, break_on_hyphens=False))
        paragraphs.append("")
    return "\n".join(paragraphs).strip()


def link(found: re.Match[str]) -> str:
    return f"[{found[1]}](../{found[1]}{found[2] or ''})"


def cell(text: str) -> str:
    return " ".join(prose(text).split())


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


if __name__ == "__main__":
    (DOCS / "reference").mkdir(exist_ok=True)
    for path, text in products().items():
        path.write_text(text, encoding="utf-8")
