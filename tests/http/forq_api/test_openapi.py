"""The OpenAPI document is valid, and says of every route what the route does."""

import re

import msgspec
import pytest
import trio
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from openapi_spec_validator import OpenAPIV31SpecValidator

from forq_trio.http.forq_api import answer_error
from forq_trio.http.forq_api.possible_errors import possible_errors
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import Request, Response
from forq_trio.http.router import HttpRouter, Route
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.errors import QueueFull, QueueNotFound
from forq_trio.model.forq_error import REASONS
from forq_trio.model.member_names import json_name
from forq_trio.model.queues.endpoints import SHOW_QUEUE
from support.endpoints import named_endpoints
from support.forq_api import Api, json_of, make_request, only_documented, open_api


async def document_of(api: Api) -> dict:
    return json_of(await api.handler(make_request("GET", "/api/v1/openapi.json", headers={})))


@pytest.fixture(scope="module")
def document() -> dict:
    """It takes 0.1 s to make."""

    async def made() -> dict:
        async with open_api() as api:
            return await document_of(api)

    return trio.run(made)


def test_every_schema_is_one(document: dict):
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.tier2  # the references of all schemas are followed again and again, for six seconds
def test_the_document_is_valid(document: dict):
    OpenAPIV31SpecValidator(document).validate()


async def test_a_full_answer_has_only_members_that_the_document_knows(api: Api, document: dict):
    await api.call("PUT", "q/keys/a?kind=b", {"content": "x", "attributes": {"n": "1"}, "group": "g"})
    answer = document["paths"]["/api/v1/queues/{queue}/messages"]["get"]["responses"]["200"]
    either = [
        each["$ref"].rpartition("/")[2] for each in answer["content"]["application/json"]["schema"]["anyOf"]
    ]
    assert either == ["ReceivedMessage", "NextMessage"]
    full = document["components"]["schemas"][either[0]]
    received = (await api.receive()).keys()
    assert set(full["required"]) <= received <= full["properties"].keys()


async def test_it_is_served_at_two_places_without_a_key(api: Api):
    first = await api.handler(make_request("GET", "/api/v1/openapi.json", headers={}))
    second = await api.handler(make_request("GET", "/openapi.json", headers={}))
    assert first.status == second.status == 200
    assert first.body == second.body


async def test_it_has_every_route_and_no_other(api: Api, document: dict):
    documented = {
        (method.upper(), path) for path, operations in document["paths"].items() for method in operations
    }
    assert documented == {(route.method, route.path) for route in api.routes}
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))


async def test_every_endpoint_that_is_declared_has_a_route(api: Api):
    declared = dict(named_endpoints())
    routed = [route.operation for route in api.routes if isinstance(route.operation, Endpoint)]
    assert sorted(map(id, routed)) == sorted(map(id, declared.values()))
    names = {name: each.name for name, each in declared.items()}
    assert names == {re.sub("([A-Z])", r"_\1", name).upper(): name for name in names.values()}


async def test_every_route_is_described_wholly(api: Api, document: dict):
    for route in api.routes:
        described = document["paths"][route.path][route.method.lower()]
        scopes = [route.gate.scope.value] if route.gate and route.gate.scope else []
        schemes = {scheme for each in described["security"] for scheme in each}
        assert schemes == ({"ApiKey", "Bearer"} if scopes else {"ApiKey"} if route.gate else set())
        assert all(each == {scheme: scopes} for each in described["security"] for scheme in each)
        in_path = [
            parameter["name"] for parameter in described.get("parameters", []) if parameter["in"] == "path"
        ]
        assert in_path == re.findall(r"{(\w+)}", route.path)
        assert ("requestBody" in described) == (route.operation.body is not None)
        statuses = {str(answer.status) for answer in route.operation.answers}
        statuses |= {str(status) for status in possible_errors(route)}
        assert statuses <= described["responses"].keys()
        assert (
            ("401" in described["responses"]) == ("429" in described["responses"]) == (route.gate is not None)
        )
        for status, reasons in possible_errors(route).items():
            response = described["responses"][str(status)]
            if "$ref" in response:
                response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
            text = msgspec.json.encode(response).decode()
            assert all(reason.code in text for reason in reasons)


def test_every_code_but_those_of_no_route_is_in_it(document: dict):
    text = msgspec.json.encode([document["paths"], document["components"]["responses"]]).decode()
    elsewhere = {"not_found.path", "method_not_allowed"}
    assert {code for code in REASONS if f"`{code}`" not in text} == elsewhere


def test_descriptions_name_members_as_they_are_in_json(document: dict):
    schemas = document["components"]["schemas"]
    members = {member for schema in schemas.values() for member in schema.get("properties", {})}
    described = {name: schema.get("description", "") for name, schema in schemas.items()}
    words = {
        (name, word) for name, text in described.items() for word in re.findall(r"[a-z]+(?:_[a-z]+)+", text)
    }
    assert {(name, word) for name, word in words if json_name(word) in members} == set()


FOLLOWING = [
    ("POST", "q/pause", {"x": 1}, "bad_request.body.unknown_field"),
    ("POST", "q/resume", {"x": 1}, "bad_request.body.unknown_field"),
    ("POST", "q/purge", b"x", "bad_request.body.invalid"),
    ("DELETE", "q/history", {"x": 1}, "bad_request.body.unknown_field"),
    ("GET", f"q-dlq/dead-letters?reason={'x' * 1_025}", b"", "bad_request.out_of_range"),
    ("GET", f"q/history?reason={'x' * 1_025}", b"", "bad_request.out_of_range"),
    (
        "POST",
        "q/consumers/c/lease",
        {"generation": 1, "number": 1, "waitMs": 30_001},
        "bad_request.waitMs.out_of_range",
    ),
]


async def test_it_lists_the_errors_that_follow_from_the_request(api: Api):
    await api.send("x", queue="q")
    for method, path, body, code in FOLLOWING:
        assert (await api.code(method, path, body))[1] == code  # fails if the document does not list it


async def test_an_error_that_is_not_listed_fails_the_test():
    async def refuse(request: Request, queue: str) -> Response:
        raise Refused(QueueFull)

    shown = replace(SHOW_QUEUE, errors=(QueueNotFound,))
    route = Route("GET", "/api/v1/queues/{queue}", refuse, shown, answer_error)
    with pytest.raises(AssertionError, match="does not list"):
        await only_documented(HttpRouter([route], answer_error))(make_request("GET", "/api/v1/queues/q"))


BOUNDS = [
    ("ReceiveRequest", "max", {"minimum": 1, "maximum": 100, "default": 1}),
    ("ReceiveRequest", "waitMs", {"minimum": 0, "maximum": 30_000, "default": 0}),
    ("ReceiveRequest", "where", {"maxProperties": 10}),
    ("ReceiveRequest", "leaseMs", {"minimum": 0, "maximum": 43_200_000}),
    ("SettingsChange", "maxAttempts", {"minimum": 1, "maximum": 1_000_000}),
    ("SettingsChange", "backOff", {"minItems": 1, "maxItems": 100}),
    ("ExponentialBackOff", "jitter", {"minimum": 0, "maximum": 1, "default": 0}),
    ("ReleaseRequest", "delayMs", {"minimum": 0, "maximum": 2_592_000_000, "default": 0}),
    ("NackRequest", "maxAttempts", {"minimum": 1, "maximum": 1_000_000}),
    ("NewMessages", "messages", {"maxItems": 1_000}),
    ("AckRequest", "receipts", {"maxItems": 1_000}),
    ("Offerings", "messages", {"maxItems": 1_000}),
    ("Offering", "key", {"minLength": 1, "maxLength": 200}),
    ("Offering", "kind", {"maxLength": 100, "default": ""}),
    ("Offer", "maxWaitMs", {"minimum": 1, "maximum": 31_622_400_000}),
    ("Offer", "mode", {"default": "createOrUpdate"}),
    ("NewMessage", "content", {"maxLength": 262_144}),
    ("NewMessage", "priority", {"minimum": 0, "maximum": 1_000, "default": 100}),
    ("NewMessage", "delayMs", {"minimum": 0, "maximum": 31_622_400_000}),
    ("NewMessage", "ttlMs", {"minimum": 1, "maximum": 31_622_400_000}),
    ("NewMessage", "deduplicationWindowMs", {"minimum": 1, "maximum": 43_200_000}),
    ("NewMessage", "maxAttempts", {"minimum": 1, "maximum": 1_000_000}),
    ("NewMessage", "attributes", {"maxProperties": 10}),
    ("NewMessage", "group", {"minLength": 1, "maxLength": 128}),
    ("NewMessage", "deduplicationId", {"minLength": 1, "maxLength": 128}),
]


def test_bounds_are_stated(document: dict):
    for schema, member, bounds in BOUNDS:
        described = dict(document["components"]["schemas"][schema]["properties"][member])
        described |= described.get("anyOf", [{}])[0]  # of what may also be null
        assert {key: described.get(key) for key in bounds} == bounds, (schema, member)


def test_an_endpoint_whose_path_has_a_value_that_nobody_declared_cannot_be_made():
    with pytest.raises(AssertionError, match="what"):
        replace(SHOW_QUEUE, path="/queues/{queue}/{what}")
