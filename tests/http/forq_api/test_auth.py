"""The key check and its throttle: contract F8."""

import pytest

from forq_trio.http.access import client_address
from forq_trio.http.throttle import Throttle
from forq_trio.model import limits
from support.forq_api import METRICS_SECRET, SECRET, Api, Seconds, blamed, json_of, make_request

WRONG = {b"x-api-key": b"w" * 32}
RIGHT = {b"x-api-key": SECRET.encode()}
CLIENT = "192.0.2.1"


async def ask(api: Api, headers: dict[bytes, bytes], client: str = CLIENT) -> tuple[int, str]:
    response = await api.handler(make_request("GET", "/api/v1/queues", headers=headers, client=client))
    return response.status, json_of(response).get("code", "")


async def lock_out(api: Api, client: str = CLIENT) -> None:
    for _ in range(limits.AUTH_FAILURES_MAX):
        assert await ask(api, WRONG, client) == (401, "unauthorized")


async def test_f8_wrong_keys(api: Api):
    right = SECRET.encode()
    for key in (b"", b"x", right[:-1], right + b"s", right.upper(), b"\xff" * 32, b"ApiKey"):
        assert await ask(api, {b"x-api-key": key}) == (401, "unauthorized"), key
        api.seconds.value += limits.AUTH_WINDOW_SECONDS


async def test_f8_no_key(api: Api):
    assert await ask(api, {}) == (401, "unauthorized")
    assert await ask(api, {b"authorization": RIGHT[b"x-api-key"]}) == (401, "unauthorized")


async def test_f8_the_right_key(api: Api):
    assert await ask(api, RIGHT) == (200, "")
    assert len(api.throttle) == 0


async def test_f8_every_route_but_the_documented_ones_needs_the_key(api: Api):
    public = {"/healthcheck", "/livez", "/openapi.json", "/api/v1/openapi.json"}
    assert {route.path for route in api.routes if route.gate is None} == public
    for number, route in enumerate(api.routes):
        path = route.path.replace("{queue}", "q").replace("{messageId}", "x")
        request = make_request(
            route.method, path, b'{"content":"m"}', headers=WRONG, client=f"192.0.2.{number}"
        )
        assert (await api.handler(request)).status == (
            401 if route.gate else (204 if path in ("/healthcheck", "/livez") else 200)
        )
    assert api.broker.known.counts() == {}


async def test_f8_five_failures_lock_the_address_for_60_seconds(api: Api):
    await lock_out(api)
    request = make_request("GET", "/api/v1/queues", headers=WRONG)
    response = await api.handler(request)
    assert (response.status, blamed(json_of(response))) == (429, {"code": "too_many_requests"})
    assert response.headers == ((b"retry-after", b"60"),)
    api.seconds.value += 59.5
    response = await api.handler(request)
    assert (response.status, response.headers) == (429, ((b"retry-after", b"1"),))
    api.seconds.value += 0.5
    await lock_out(api)
    assert await ask(api, WRONG) == (429, "too_many_requests")


async def test_f8_a_lock_out_compares_all_keys_and_keeps_nothing_of_the_wrong_ones(
    api: Api, caplog: pytest.LogCaptureFixture
):
    """As docs/access.md says: it is no defence against guessing, and guesses leave nothing behind."""
    await lock_out(api)
    for number in range(50):
        assert await ask(api, {b"x-api-key": b"guess %d" % number}) == (429, "too_many_requests")
    assert len(api.throttle) == 1
    assert [record.getMessage() for record in caplog.records] == ["event='auth.throttled' client='192.0.2.1'"]
    assert await ask(api, RIGHT) == (200, "")
    assert await ask(api, WRONG) == (401, "unauthorized")


async def test_f8_a_locked_address_does_not_lengthen_its_lock(api: Api):
    await lock_out(api)
    for _ in range(10):
        api.seconds.value += 5.9
        assert await ask(api, WRONG) == (429, "too_many_requests")
    api.seconds.value += 1.0
    assert await ask(api, WRONG) == (401, "unauthorized")


async def test_f8_failures_are_forgotten_after_60_seconds(api: Api):
    for _ in range(3 * limits.AUTH_FAILURES_MAX):
        assert await ask(api, WRONG) == (401, "unauthorized")
        api.seconds.value += limits.AUTH_WINDOW_SECONDS / (limits.AUTH_FAILURES_MAX - 1)


async def test_f8_the_right_key_always_passes_and_clears(api: Api):
    await lock_out(api)
    assert await ask(api, RIGHT) == (200, "")
    assert await ask(api, WRONG) == (401, "unauthorized")


async def test_f8_the_right_key_of_one_address_clears_no_other(api: Api):
    await lock_out(api)
    assert await ask(api, RIGHT, "192.0.2.2") == (200, "")
    assert await ask(api, WRONG) == (429, "too_many_requests")


async def test_f8_addresses_are_counted_apart(api: Api):
    await lock_out(api)
    assert await ask(api, WRONG, "192.0.2.2") == (401, "unauthorized")


async def test_f8_the_throttle_is_shared_with_the_metrics(api: Api):
    await lock_out(api)
    request = make_request("GET", "/metrics", headers=WRONG)
    assert (await api.handler(request)).status == 429
    request = make_request("GET", "/metrics", headers={b"x-api-key": METRICS_SECRET.encode()})
    assert (await api.handler(request)).status == 200


def test_f8_the_rightmost_forwarded_address_counts_if_the_proxy_is_trusted():
    for header, client in (
        (None, CLIENT),
        (b"", CLIENT),
        (b" ", CLIENT),
        (b"198.51.100.1", "198.51.100.1"),
        (b"198.51.100.1, 198.51.100.2", "198.51.100.2"),
        (b"203.0.113.9, 198.51.100.1,2001:db8::1 ", "2001:db8::/64"),
        (b"198.51.100.1,", CLIENT),
        (b"\xff", "\xff"),
        (b"x" * 10_000, "x" * 64),
    ):
        headers = {} if header is None else {b"x-forwarded-for": header}
        request = make_request("GET", "/", headers=headers)
        assert client_address(request, trust_proxy_headers=True) == client
        assert client_address(request, trust_proxy_headers=False) == CLIENT


async def test_f8_behind_a_trusted_proxy_clients_are_locked_out_one_by_one(api: Api):
    api.serve(trust_proxy_headers=True)
    for _ in range(limits.AUTH_FAILURES_MAX):
        assert await ask(api, {**WRONG, b"x-forwarded-for": b"203.0.113.9, 198.51.100.1"}) == (
            401,
            "unauthorized",
        )
    assert await ask(api, {**WRONG, b"x-forwarded-for": b"198.51.100.1"}) == (429, "too_many_requests")
    assert await ask(api, {**WRONG, b"x-forwarded-for": b"203.0.113.9"}) == (401, "unauthorized")


def test_f8_remembered_addresses_are_bounded():
    seconds = Seconds()
    throttle = Throttle(seconds)
    for number in range(limits.AUTH_TRACKED_CLIENTS_MAX):
        throttle.failed(str(number))
    for _ in range(limits.AUTH_FAILURES_MAX - 1):
        throttle.failed("0")
    throttle.failed("one more")
    assert len(throttle) == limits.AUTH_TRACKED_CLIENTS_MAX
    assert throttle.locked_seconds("0") == limits.AUTH_WINDOW_SECONDS
    for _ in range(limits.AUTH_FAILURES_MAX - 1):
        throttle.failed("1")  # forgotten when one more came, so this is no fifth failure
    assert throttle.locked_seconds("1") == 0.0
