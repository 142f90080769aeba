"""What the document says beyond the forms of bodies: what is required, what is there, how long a number is, words."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from forq_trio.http.forq_api.openapi_schemas import in_json
from forq_trio.model.endpoint import TOPICS
from support.forq_api import Api, json_of

from .conftest import Described, schemas_in

IN_PATHS = {
    "queue": "q",
    "messageId": "01890000-0000-7000-8000-000000000000",
    "key": "k",
    "redriveId": "r",
    "schedule": "s",
    "consumer": "c",
    "number": "1",
    "stage": "s",
    "page": "0",
    "app": "a",
    "outbox": "o",
    "batch": "b",
    "workerId": "01890000-0000-7000-8000-000000000000",
    "name": "t",
}


async def test_a_body_is_required_where_a_request_without_one_is_refused(
    api: Api, operations: list[Described]
):
    wrong = []
    for each in operations:
        body = each.operation.get("requestBody")
        if body is None:
            continue
        path = re.sub(r"{(\w+)}", lambda name: IN_PATHS[name[1]], each.path)
        response = await api.call(each.method, path, b"")
        if (response.status == 400) is not body["required"]:
            wrong.append((each.name, response.status, response.body))
    assert wrong == []


def test_what_is_only_answered_has_all_its_members(document):
    """`omit_defaults` leaves members out of those that are named here."""
    schemas = document["components"]["schemas"]
    assert schemas["QueueInfo"]["required"] == list(schemas["QueueInfo"]["properties"])
    assert schemas["MessageInfo"]["required"] == list(schemas["MessageInfo"]["properties"])
    assert schemas["Produced"]["required"] == ["id", "sequence"]
    assert schemas["SendResult"].get("required", []) == []
    assert schemas["NewMessage"]["required"] == ["content"]


async def test_answers_have_what_the_document_requires(api: Api, document):
    await api.send("m")
    for path, kind in [("q", "QueueInfo"), ("q/health", "QueueHealth")]:
        answer = await api.call("GET", path)
        assert set(document["components"]["schemas"][kind]["required"]) == json_of(answer).keys()


def test_numbers_that_need_64_bits_say_so(document):
    for schema in schemas_in(document):
        kind = schema.get("type")
        if kind == "integer" or kind == ["integer", "null"]:
            long = schema.get("maximum", 2**63) > 2**31 - 1
            assert (schema.get("format") == "int64") is long, schema
    received = document["components"]["schemas"]["MessageInfo"]["properties"]
    assert received["receivedAt"]["format"] == received["leaseUntil"]["format"] == "int64"


LATER = {"code": "conflict.of_a_later_server", "message": "no", "field": "$.x"}
OF_CALLERS = {"QueueTable", "RatePer"}
"""Lists of words in what is sent and comes back as it was sent: nobody gets a word that no client has sent."""


def test_a_strict_client_takes_codes_that_it_does_not_know(document, operations: list[Described]):
    answers = [*document["components"]["responses"].values()]
    answers += [each for described in operations for each in described.operation["responses"].values()]
    errors = [
        content["schema"]
        for answer in answers
        for content in answer.get("content", {}).values()
        if "code" in content["schema"].get("properties", {})
    ]
    assert len(errors) > 50
    for schema in errors:
        Draft202012Validator(schema).validate(LATER)
        code = schema["properties"]["code"]
        assert code["x-extensible-enum"], "generators and people find the known codes there"


def test_a_strict_client_takes_words_that_it_does_not_know(document, operations: list[Described]):
    """Kinds of events, states, reasons, scopes …: what only a server says is no closed list."""
    schemas = document["components"]["schemas"]
    sent = _types_in([each.operation.get("requestBody") for each in operations], schemas)
    answered = _types_in([each.operation["responses"] for each in operations], schemas)
    closed = {name for name in answered if any("enum" in each for each in schemas_in(schemas[name]))}
    assert closed == OF_CALLERS
    assert closed <= sent
    assert [name for name in answered - sent if schemas[name].get("additionalProperties") is False] == []
    for name, member in [("MessageEvent", "kind"), ("QueueInfo", "level"), ("TokenInfo", "scopes")]:
        described = schemas[name]["properties"][member]
        assert "x-extensible-enum" in described.get("items", described), (name, member)


def _types_in(value: Any, schemas: dict[str, Any]) -> set[str]:
    """The types to which a part of the document refers, at any depth."""
    found: set[str] = set()
    pending = [each["$ref"] for each in schemas_in(value) if "$ref" in each]
    while pending:
        place, _, name = pending.pop().rpartition("/")
        if place.endswith("/schemas") and name not in found:
            found.add(name)
            pending += [each["$ref"] for each in schemas_in(schemas[name]) if "$ref" in each]
    return found


def test_the_id_of_a_message_has_the_same_form_in_paths_and_answers(document):
    """So a generated client has one type for both."""
    schemas = document["components"]["schemas"]
    path = document["paths"]["/api/v1/queues/{queue}/messages/{messageId}"]["get"]
    in_path = next(each["schema"] for each in path["parameters"] if each["name"] == "messageId")
    for kind in ("NextMessage", "ReceivedMessage", "MessageInfo", "SendResult", "Offered", "Produced"):
        assert schemas[kind]["properties"]["id"]["format"] == in_path["format"] == "uuid", kind


def test_null_is_a_type_beside_the_other(document):
    """Generators understand that better than `anyOf`."""
    for schema in schemas_in(document["components"]):
        if {"type": "null"} in schema.get("anyOf", ()):
            kinds = [each for each in schema["anyOf"] if each != {"type": "null"}]
            assert len(kinds) > 1 or "$ref" in kinds[0] or "enum" in kinds[0], schema


def test_every_member_is_described(document):
    without = [
        f"{name}.{member}"
        for name, schema in document["components"]["schemas"].items()
        for member, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    assert without == []


def test_every_operation_is_described(operations: list[Described]):
    assert [each.name for each in operations if not each.operation["summary"]] == []
    assert [each.name for each in operations if each.operation["summary"].endswith(".")] == []
    assert {tag for each in operations for tag in each.operation["tags"]} == set(TOPICS)


PYTHON = re.compile(
    r"\bNone\b|\bTrue\b|\bFalse\b|[Tt]his and the (?:next|one)|[Tt]hese \d|\b(?!FORQ_)[A-Z]+_[A-Z_]+\b"
)
"""Words that are clear beside the code only."""


def test_no_description_is_about_python(document):
    said = [
        schema["description"] for schema in schemas_in(document) if isinstance(schema.get("description"), str)
    ]
    assert len(said) > 500
    assert [text for text in said if PYTHON.search(text)] == []


def test_texts_about_python_are_translated():
    text = "lease_ms is None: the\nqueue's\n\ndrop_oldest is True"
    assert in_json(text, {"leaseMs"}) == "leaseMs is `null`: the queue's\n\ndrop_oldest is `true`"


@pytest.mark.parametrize(
    ("name", "always"),
    [("listEvents", True), ("readHistory", True), ("readLease", False), ("exportQueue", False)],
)
def test_headers_of_pages_are_in_it(operations: list[Described], name, always):
    (operation,) = (each.operation for each in operations if each.name == name)
    header = operation["responses"]["200"]["headers"]["X-Forq-Next"]
    assert header["required"] is always
    assert header["schema"]["format"] == "int64"
