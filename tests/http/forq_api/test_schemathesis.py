"""Generated requests, right and wrong ones, against the OpenAPI document: no 5xx, and every answer is a documented one.

There is no socket: a request goes from schemathesis to the handler and the answer back. Each example has a queue of
its own, and long polls wait on a clock that jumps. FORQ_TEST_EFFORT says how many of them for each operation.
"""

from datetime import timedelta
from typing import Any

import httpx
import msgspec
import pytest
import requests
import schemathesis
import trio
import trio.testing
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS
from schemathesis.generation import GenerationMode

from forq_trio.http.message import Response
from support.effort import count
from support.forq_api import METRICS_SECRET, SECRET, Api, make_request, open_api
from support.openapi_words import closed

BASE_URL = "http://127.0.0.1"


@schemathesis.serializer("application/x-ndjson")
def one_line(context: Any, value: Any) -> bytes:
    """A body of lines of JSON: one line."""
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


CHECK_NAMES = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
WAITING = {"receiveMessage", "receiveMessages", "listWithdrawn"}
QUICK = {
    *("sendMessage", "sendMessages", "offerMessages", "receiveMessages", "ackMessages", "nackMessages"),
    *("changeSettings", "saveSchedule", "searchDeadLetters", "showMessage"),
}
"""What tier 1 generates requests for: 0.1 s of processor time each, for a body or a query with many members."""


def load_document() -> dict[str, Any]:
    async def load() -> dict[str, Any]:
        async with open_api() as api:
            return closed(httpx.Response(200, content=(await api.call("GET", "/openapi.json")).body).json())

    return trio.run(load)


SCHEMA = schemathesis.openapi.from_dict(load_document())
SCHEMA.config.update(base_url=BASE_URL)
OPERATIONS = {
    operation.definition.raw["operationId"]: operation
    for operation in (result.ok() for result in SCHEMA.get_all_operations())
}
CHECKS_USED = CHECKS.get_by_names(list(CHECK_NAMES))

BOUNDED = settings(
    max_examples=count("requests"),
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def exchange(api: Api, case: schemathesis.Case, key: str) -> httpx.Response:
    """Hand over the request of `case` and bring back the answer."""
    kwargs = case.as_transport_kwargs(base_url=BASE_URL)
    wanted = {
        name: kwargs.get(name) for name in ("method", "url", "headers", "params", "json", "data", "cookies")
    }
    prepared = requests.Request(**wanted).prepare()
    body = prepared.body or b""
    headers = {
        name.lower().encode("latin-1"): str(value).encode() for name, value in prepared.headers.items()
    }
    headers[b"x-api-key"] = key.encode()
    method = str(prepared.method)
    raw = body.encode() if isinstance(body, str) else body
    response = await api.handler(make_request(method, prepared.path_url, raw, headers))
    return as_httpx(response, httpx.Request(method, str(prepared.url)))


def as_httpx(response: Response, request: httpx.Request) -> httpx.Response:
    """As a client sees it: an answer without a body says nothing about a content type."""
    headers = list(response.headers)
    if response.status != 204:
        headers.append((b"content-type", response.content_type))
    answer = httpx.Response(response.status, headers=headers, content=response.body, request=request)
    answer.elapsed = timedelta()
    return answer


def can_be_wrong(name: str) -> bool:
    """Whether a request of this operation has anything that one can get wrong."""
    operation = OPERATIONS[name]
    return bool(operation.body or operation.path_parameters or operation.query)


@pytest.mark.parametrize(
    "name",
    [each if each in QUICK else pytest.param(each, marks=pytest.mark.tier2) for each in sorted(OPERATIONS)],
)
def test_generated_requests(name: str):
    check_generated(name, GenerationMode.POSITIVE)


@pytest.mark.tier2
@pytest.mark.parametrize("name", sorted(filter(can_be_wrong, OPERATIONS)))
def test_generated_requests_that_are_wrong(name: str):
    """In tier 1 test_error_words.py and test_bad_bodies.py have wrong ones of each kind."""
    check_generated(name, GenerationMode.NEGATIVE)


def check_generated(name: str, mode: GenerationMode) -> None:
    operation = OPERATIONS[name]

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def examples(case: schemathesis.Case) -> None:
        async def run() -> httpx.Response:
            async with open_api() as api:
                await api.send("1", "2", queue="q")
                return await exchange(api, case, METRICS_SECRET if name == "metrics" else SECRET)

        clock = trio.testing.MockClock(autojump_threshold=0) if name in WAITING else None
        case.validate_response(trio.run(run, clock=clock), checks=CHECKS_USED)

    examples()
