"""Who may have the connections of a server: those without a key keep nobody out, and a token leaves some to others."""

import pytest
import trio
import trio.testing

from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http2 import frames
from forq_trio.model import limits
from forq_trio.model.budget import Share
from forq_trio.model.holders import OWNER, Holder, HolderKind
from support.transport import get, running

from .test_http2_rules import SETTINGS, frames_behind, number, request
from .test_shares import KEY, admit

TOKEN = Holder(HolderKind.TOKEN, "one")
LATER = limits.KEYLESS_CONNECTION_SECONDS


class Cut:
    """A connection that notes whether it was cut."""

    def __init__(self) -> None:
        self.is_cut = False

    def cut(self) -> None:
        self.is_cut = True


def opened(connections: OpenConnections[Cut], count: int, client: str, now: float = 0.0) -> list[Cut]:
    """As many connections from this address as it may have, up to `count`."""
    found = []
    for _ in range(count):
        if connections.admit(client, now):
            found.append(Cut())
            connections.add(found[-1], client, now)
    return found


def test_an_address_has_half_and_this_machine_all():
    assert len(opened(OpenConnections(10), 20, "192.0.2.1")) == 5
    assert len(opened(OpenConnections(10), 20, "127.0.0.1")) == 10
    connections: OpenConnections[Cut] = OpenConnections(10)
    opened(connections, 20, "2001:db8::1")
    assert not connections.admit("2001:db8::2", 0.0)
    assert connections.admit("2001:db8:0:1::1", 0.0)


def test_the_keyless_connection_that_is_open_longest_is_replaced_and_none_with_a_key():
    connections: OpenConnections[Cut] = OpenConnections(3)
    first, second, third = opened(connections, 3, "127.0.0.1")
    connections.show(first, TOKEN)
    assert not connections.admit("192.0.2.1", LATER / 2)
    assert connections.admit("192.0.2.1", LATER)
    assert [each.is_cut for each in (first, second, third)] == [False, True, False]
    for each in (second, third):
        connections.remove(each)
    connections.show(first, OWNER)
    connections.remove(first)
    assert (len(connections), connections.budget.used) == (0, 0)


def test_a_token_has_no_more_than_its_share():
    connections: OpenConnections[Cut] = OpenConnections(9)
    held = [connections.show(each, TOKEN) for each in opened(connections, 9, "127.0.0.1")]
    assert held.count(True) == 6
    assert connections.budget.refused == {Share.TOKEN: 3}


async def test_a_request_beyond_the_share_of_its_token_is_refused_and_closed():
    async with running(admit=admit, config=TransportConfig(connections_max=4)) as transport:
        statuses = []
        for _ in range(3):
            client = await transport.connect()
            await client.send(get("/", "X-API-Key: one"))
            answer = await client.answer()
            statuses.append(answer.status)
        assert statuses == [200, 200, 503]
        assert answer.headers[b"connection"] == b"close"
        over_http2 = await transport.connect()
        last = await frames_behind(
            over_http2, frames.PREFACE + SETTINGS + request((KEY, b"one")), [frames.GOAWAY]
        )
        assert last[frames.GOAWAY][1].endswith(number(frames.ENHANCE_YOUR_CALM))
        owner = await transport.connect()
        await owner.send(get("/", "X-API-Key: owner"))
        assert (await owner.answer()).status == 200


@pytest.mark.parametrize("sends", [b"", b"GET / HT", frames.PREFACE + SETTINGS])
async def test_connections_without_a_key_keep_nobody_out(monkeypatch, sends: bytes):
    monkeypatch.setattr(limits, "KEYLESS_CONNECTION_SECONDS", 0.0)
    async with running(admit=admit, config=TransportConfig(connections_max=3)) as transport:
        keyed = await transport.connect()
        await keyed.send(get("/", "X-API-Key: owner"))
        assert (await keyed.answer()).status == 200
        for _ in range(10):
            client = await transport.connect()
            if sends:
                await client.send(sends)
            await trio.testing.wait_all_tasks_blocked()
        for client in (keyed, await transport.connect()):
            await client.send(get("/", "X-API-Key: owner"))
            assert (await client.answer()).status == 200
