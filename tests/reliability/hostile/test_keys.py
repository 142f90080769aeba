"""Wrong keys (F8): they lock no right one out, and how long they are looked at does not tell how wrong they are."""

import random
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress

import httpx
import pytest

from forq_trio.http.access import Access, ApiKeyGate
from forq_trio.http.errors import HttpError
from forq_trio.http.message import Request
from forq_trio.http.throttle import Throttle
from forq_trio.model.access.types import Scope

from .raw import KEY, connect, request, statuses, until_end

# So long that a comparison that stops at the first difference takes ten times as long for a late one.
SECRET_BYTES = 256 * 1024
ROUNDS = 150
RATIO_MAX = 1.5


class NoTokens:
    """Knows no token, and takes no time to say so."""

    def use(self, key: str) -> None:
        return None


def ratio(look: Callable[[bytes], object], secret: bytes, rng: random.Random) -> float:
    """How much longer a key is looked at whose last byte is wrong than one whose first is.

    Processor time, of both in turns and in random order, so that whatever else the machine does happens to both; and of
    each the lower quartile, which interruptions hardly move.
    """
    keys = {"early": b"?" + secret[1:], "late": secret[:-1] + b"?"}
    seconds: dict[str, list[float]] = {"early": [], "late": []}
    for _ in range(ROUNDS):
        for name in rng.sample(sorted(keys), 2):
            started = time.thread_time()
            look(keys[name])
            seconds[name].append(time.thread_time() - started)
    quartile = {name: statistics.quantiles(values, n=4)[0] for name, values in seconds.items()}
    return quartile["late"] / quartile["early"]


def asking(gate: Callable[[Request], object], header: bytes, prefix: bytes = b"") -> Callable[[bytes], None]:
    def look(key: bytes) -> None:
        with suppress(HttpError):
            gate(Request("GET", "/", "", {header: prefix + key}, b"", "192.0.2.1", nullcontext))

    return look


@pytest.fixture
def secret(rng) -> str:
    return "".join(rng.choices("abcdefgh", k=SECRET_BYTES))


def gates(secret: str) -> dict[str, Callable[[bytes], object]]:
    access = Access(secret, NoTokens(), Throttle())
    return {
        "metrics": asking(ApiKeyGate(secret, Throttle()), b"x-api-key"),
        "API": asking(access.gate(Scope.ADMIN, None), b"x-api-key"),
        "API, bearer": asking(access.gate(Scope.ADMIN, None), b"authorization", b"Bearer "),
    }


@pytest.mark.parametrize("name", ["metrics", "API", "API, bearer"])
def test_a_nearly_right_key_takes_no_longer(name, secret, rng) -> None:
    found = ratio(gates(secret)[name], secret.encode(), rng)
    print(f"{name}: a late mismatch takes {found:.3f} times as long as an early one")
    assert 1 / RATIO_MAX < found < RATIO_MAX


def test_a_comparison_that_stops_at_the_first_difference_would_be_noticed(secret, rng) -> None:
    """Control: what the test above is there to find."""
    right = secret.encode()

    def naive(asked: Request) -> bool:
        return asked.headers[b"x-api-key"] == right

    found = ratio(asking(naive, b"x-api-key"), right, rng)
    print(f"naive: {found:.1f} times")
    assert found > RATIO_MAX


@pytest.mark.process
def test_a_storm_of_wrong_keys_from_ones_own_address_locks_no_right_key_out(server, port) -> None:
    """Secret and token, in both dialects, on new connections and on the very one that was locked out."""
    with httpx.Client(base_url=server.url, headers=KEY, timeout=120, verify=False) as client:
        made = client.post("/api/v1/tokens", json={"name": "storm", "scopes": ["admin"]})
        token = made.json()["token"]
        right = [
            request("GET", "/api/v1/queues", key=KEY["X-API-Key"]),
            request("GET", "/api/v1/queues", key=token),
            request("GET", "/api/v1/queues", None, f"Authorization: Bearer {token}").replace(
                b"X-API-Key", b"X-Other"
            ),
            request("GET", "/queues", key=KEY["X-API-Key"]),
            request("GET", "/queues", key=token),
        ]
        wrong = [
            request("GET", "/api/v1/queues", key="w" * 39),
            request("GET", "/queues", key=token[:-1] + ("a" if token[-1] != "a" else "b")),
            request("GET", "/api/v1/queues").replace(b"X-API-Key", b"X-Other"),
        ]
        for each in right:
            with connect(port) as locked:
                locked.sendall(b"".join(wrong[number % 3] for number in range(12)) + each)
                locked.sendall(wrong[0].replace(b"Host: x", b"Host: x\r\nConnection: close"))
                found = statuses(until_end(locked))
            assert found[4] in (401, 429)
            assert found[5:12] == [429] * 7
            assert found[12:] == [200, 401], "a right key passes, and clears the count"
        assert client.get("/api/v1/queues").status_code == 200


@pytest.mark.process
def test_a_locked_out_address_is_told_for_how_long(port) -> None:
    with connect(port) as client:
        client.sendall(request("GET", "/api/v1/queues", key="w" * 39) * 5)
        client.sendall(request("GET", "/api/v1/queues", None, "Connection: close", key="w" * 39))
        received = until_end(client)
    *_, last = received.split(b"HTTP/1.1 ")
    head = last.partition(b"\r\n\r\n")[0]
    assert last.startswith(b"429 ")
    (retry,) = [line for line in head.split(b"\r\n") if line.startswith(b"Retry-After: ")]
    assert 1 <= int(retry.partition(b": ")[2]) <= 60
    with connect(port) as client:
        client.sendall(request("GET", "/api/v1/queues", None, "Connection: close"))
        assert statuses(until_end(client)) == [200]
