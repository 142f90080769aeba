"""Methods, keys, tokens and trouble (S1): every error in the form of the README, details in the log only."""

import pytest

from forq_trio.http.sasquatch_api.errors import CODES, INTERNAL_ERROR, INTERNAL_MESSAGE, answer, explain
from forq_trio.http.sasquatch_api.routes import ENDPOINTS
from forq_trio.model import errors
from forq_trio.model.access.types import Scope

from .harness import SECRET, Api, json_of

UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
MESSAGE = {"queue_name": "orders", "message_body": "m"}

# Of the README, Error Codes.
README_CODES = {
    "InvalidRequest": 400,
    "ValidationError": 400,
    "MethodNotAllowed": 405,
    "NotFound": 404,
    "DuplicateMessage": 409,
    "MessageSizeExceeded": 413,
    "QueueFull": 503,
    "InternalError": 500,
}


def test_the_table_of_the_readme():
    assert {code: CODES[code].status for code in README_CODES} == README_CODES


def test_wrong_use_is_never_an_internal_error():
    kinds = [each for each in errors.KINDS.values() if issubclass(each, errors.CallerError)]
    assert kinds
    for kind in kinds:
        code = explain(kind("why")).code
        assert code != INTERNAL_ERROR, kind
        assert 400 <= CODES[code].status < 500 or kind is errors.QueueFull, kind


async def test_a_wrong_method(api: Api):
    """S1: 405, without any key; the Allow header names the right one."""
    for endpoint in ENDPOINTS:
        right, path = endpoint.split(" /")
        for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {right}:
            response = await api.call(path, method=method, headers={})
            assert response.status == 405, (method, path)
            assert json_of(response) == {
                "error": {"code": "MethodNotAllowed", "message": f"/{path} takes {right} only"}
            }
            assert dict(response.headers)[b"allow"] == (b"POST" if right == "POST" else b"GET, HEAD")


async def test_a_path_that_is_none(api: Api):
    assert await api.error("send/more") == (404, "NotFound")


async def test_a_compressed_body(api: Api):
    headers = {b"x-api-key": SECRET.encode(), b"content-encoding": b"gzip"}
    for endpoint in ENDPOINTS:
        if endpoint.startswith("POST"):
            response = await api.call(endpoint.split(" /")[1], b"\x1f\x8b", headers=headers)
            found = response.status, json_of(response)["error"]["code"]
            assert found == (415, "UnsupportedEncoding"), endpoint


async def test_keys(api: Api):
    """As Forq's (F8): the secret in X-API-Key, and five wrong ones lock out; /health needs none."""
    for endpoint in ENDPOINTS:
        api.serve()  # which has counted no wrong keys
        method, path = endpoint.split(" /")
        for headers in ({}, {b"x-api-key": b"wrong"}, {b"authorization": b"Bearer wrong"}):
            response = await api.call(path, method=method, headers=headers)
            if path == "health":
                assert response.status == 200
            else:
                assert (response.status, json_of(response)["error"]["code"]) == (401, "Unauthorized")
        for headers in ({b"x-api-key": SECRET.encode()}, {b"authorization": b"Bearer " + SECRET.encode()}):
            assert (await api.call(path, method=method, headers=headers)).status not in (401, 429), endpoint


async def test_an_address_that_guesses_is_locked_out(api: Api):
    for _ in range(5):
        assert (await api.call("queues", method="GET", headers={})).status == 401
    response = await api.call("queues", method="GET", headers={})
    assert (response.status, json_of(response)["error"]["code"]) == (429, "TooManyRequests")
    assert int(dict(response.headers)[b"retry-after"]) > 0


async def test_without_auth_no_key_is_asked_for(api: Api):
    api.serve(auth=False)
    assert (await api.call("send", MESSAGE, headers={})).status == 200
    assert (await api.call("delete_all", {"queue_name": "*"}, headers={})).status == 200
    assert (await api.call("stats", method="GET", headers={})).status == 200


async def with_token(api: Api, queues: str, *scopes: Scope) -> dict[bytes, bytes]:
    """The headers of a client with such a token."""
    text = (await api.broker.create_token("t", scopes, queues)).token
    return {b"x-api-key": text.encode()}


# What needs which scope; queue "orders" is in each of them.
DEMANDS = [
    ("send", MESSAGE, Scope.PRODUCE),
    ("enqueue?queue_name=orders", b"m", Scope.PRODUCE),
    ("receive", {"queue_name": "orders", "wait_time_seconds": 0}, Scope.CONSUME),
    ("dequeue", {"queue_name": "orders", "wait_time_seconds": 0}, Scope.CONSUME),
    ("receive", {"queue_name": "orders", "wait_time_seconds": 0, "peek": True}, Scope.BROWSE),
    ("queue_length", {"queue_name": "orders"}, Scope.BROWSE),
    ("delete_all", {"queue_name": "orders"}, Scope.ADMIN),
]


@pytest.mark.parametrize(("endpoint", "body", "scope"), DEMANDS)
async def test_scopes(api: Api, endpoint: str, body: object, scope: Scope):
    """403 names the scope that is missing, also where the queue is another one."""
    others = [each for each in Scope if each not in (scope, Scope.ADMIN)]
    for queues, scopes, status in (
        ("ord*", [scope], 200),
        ("*", [Scope.ADMIN], 200),
        ("*", others, 403),
        ("bills*", [scope], 403),
    ):
        response = await api.call(endpoint, body, headers=await with_token(api, queues, *scopes))
        assert response.status == status
        if status == 403:
            error = json_of(response)["error"]
            assert error["code"] == "Forbidden"
            assert scope.value in error["message"]
        await api.broker.revoke_token("t")


async def test_scopes_of_a_batch_hold_for_each_message(api: Api):
    headers = await with_token(api, "ord*", Scope.PRODUCE)
    messages = {"messages": [MESSAGE, MESSAGE | {"queue_name": "bills"}]}
    answered = json_of(await api.call("send_batch", messages, headers=headers))
    assert [each["index"] for each in answered["successful"]] == [0]
    assert answered["failed"][0]["error"]["code"] == "Forbidden"
    await api.broker.revoke_token("t")
    headers = await with_token(api, "*", Scope.CONSUME)
    assert (await api.call("send_batch", messages, headers=headers)).status == 403


@pytest.mark.parametrize("endpoint", ["delete", "change_visibility"])
async def test_scopes_of_handles_are_those_of_their_queues(api: Api, endpoint: str):
    await api.send(queue="orders")
    await api.send(queue="bills")
    orders, bills = [(await api.receive(queue))[0]["receipt_handle"] for queue in ("orders", "bills")]
    headers = await with_token(api, "ord*", Scope.CONSUME)

    async def status(*handles: str) -> int:
        body = {"receipt_handles": handles, "visibility_timeout": 60}
        return (await api.call(endpoint, body, headers=headers)).status

    assert await status(orders, bills) == 403
    assert await status(bills) == 403
    assert await status(orders, UUID) == 200
    assert await status(UUID) == 404
    assert await api.length("bills") == (0, 1)
    await api.broker.revoke_token("t")
    headers = await with_token(api, "ord*", Scope.PRODUCE)
    assert await status(UUID) == 403


async def test_poison_goes_only_where_the_token_reaches(api: Api):
    headers = await with_token(api, "ord*", Scope.CONSUME)
    body = {"queue_name": "orders", "wait_time_seconds": 0}
    for dead, status in (("orders-dlq", 200), ("bills", 403)):
        response = await api.call("receive", body | {"dead_letter_queue_name": dead}, headers=headers)
        assert response.status == status


async def test_a_token_sees_the_queues_it_covers(api: Api):
    await api.send(queue="orders")
    await api.send(queue="bills")
    headers = await with_token(api, "ord*", Scope.BROWSE)
    listed = json_of(await api.call("queues", method="GET", headers=headers))
    assert [each["queue_name"] for each in listed] == ["orders"]
    assert (await api.call("stats", method="GET", headers=headers)).status == 403


async def test_purging_all_queues_needs_a_token_for_all(api: Api):
    headers = await with_token(api, "ord*", Scope.ADMIN)
    body = {"queue_name": "*"}
    assert (await api.call("delete_all", body, headers=headers)).status == 403


async def test_a_server_that_stops(api: Api):
    api.writer.stop()
    response = await api.call("send", MESSAGE)
    assert (response.status, json_of(response)["error"]["code"]) == (503, "ServiceUnavailable")
    assert (b"retry-after", b"1") in response.headers
    assert await api.error("health", method="GET") == (503, "ServiceUnavailable")


def test_details_of_internal_errors_are_in_the_log_only(caplog: pytest.LogCaptureFixture):
    """README, Security: a generic message for the client."""
    for error in (
        errors.StorageUnavailable("/var/secret.db"),
        errors.OutcomeUnknown(),
        RuntimeError("/var/secret"),
    ):
        caplog.clear()
        response = answer(error)
        assert response.status == 500
        assert json_of(response) == {"error": {"code": "InternalError", "message": INTERNAL_MESSAGE}}
        assert "request.failed" in caplog.text
        assert str(error) in caplog.text


async def test_an_endpoint_that_breaks_answers_500_in_the_form_of_the_dialect(api: Api):
    del api.broker._writer
    assert await api.error("send", MESSAGE) == (500, "InternalError")


async def test_health(api: Api):
    """README, GET /health: these bytes."""
    assert (await api.call("health", method="GET")).body == b'{"status":"ok","version":"1.2.3"}'
