"""What all clients of a server share: who has no key uses up nothing, and nobody uses up everything."""

import hpack
import pytest
import trio.testing

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2 import frames
from forq_trio.model import limits
from forq_trio.model.budget import Budget, Share
from forq_trio.model.holders import OWNER, Holder, HolderKind, at_address, network
from support.transport import get, post, running

from .test_http2 import frame
from .test_http2_bounds import with_long_heads
from .test_http2_rules import PING, PSEUDO, SETTINGS, frames_behind, status

KEY = b"x-api-key"
ONE, OTHER = Holder(HolderKind.TOKEN, "one"), Holder(HolderKind.TOKEN, "other")
HERE, THERE = at_address("192.0.2.1"), at_address("192.0.2.2")
BODY = b"x" * 60_000


def admit(request: Request) -> Response | None:
    """The key "owner" is the owner's, any other the name of a token; without one: 401."""
    key = request.headers.get(KEY)
    if key is None:
        return Response(401, b"no key")
    request.holder = OWNER if key == b"owner" else Holder(HolderKind.TOKEN, key.decode())
    return None


def most(budget: Budget, holder: Holder) -> int:
    """How much the holder can add, one by one."""
    added = 0
    while budget.change(holder, 1):
        added += 1
    budget.change(holder, -1)
    return added


def test_nobody_but_the_owner_may_use_up_a_budget():
    budget = Budget(1_200)
    assert most(budget, ONE) == 800
    assert most(budget, OTHER) == 266
    assert most(budget, Holder(HolderKind.TOKEN, "late")) == 89
    assert most(budget, OWNER) == 45
    assert budget.used == 1_200
    assert budget.refused[Share.TOKEN] == 3


def test_requests_without_a_key_have_a_quarter_and_an_address_a_share_of_it():
    budget = Budget(1_200)
    assert most(budget, HERE) == 200
    assert most(budget, THERE) == 66
    assert most(budget, ONE) == 622
    assert budget.refused[Share.ADDRESS] == 2


def test_what_is_given_back_is_forgotten():
    budget = Budget(100)
    for holder in (ONE, HERE, OWNER):
        budget.change(holder, 10)
        budget.change(holder, -10)
    assert budget.used == 0
    assert most(budget, HERE) == 16


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::1", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::1", "::1"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a:name", "a:name"),
    ],
)
def test_who_has_one_address_of_a_network_has_them_all(address: str, counted: str):
    assert network(address) == counted


def test_a_connection_has_a_share_of_the_answers():
    budget = AnswerBudget(8 * limits.SHORT_ANSWER_BYTES_MAX)

    def status_of(own_bytes: int) -> int:
        response = Response(200, bytes(limits.SHORT_ANSWER_BYTES_MAX))
        refuse = lambda status, *_: Response(status)  # noqa: E731
        return budget.admit(OWNER, "GET", "/", {}, response, refuse, own_bytes).status

    assert [status_of(0), status_of(limits.SHORT_ANSWER_BYTES_MAX)] == [200, 200]
    assert status_of(2 * limits.SHORT_ANSWER_BYTES_MAX) == 503
    assert status_of(0) == 200
    assert budget.refused == {Share.CONNECTION: 1}


async def test_heads_without_a_key_are_refused_when_they_end_and_nothing_of_them_is_kept():
    """Streams that are left open behind heads of 12 KiB, each a few bytes on the wire, filled the budget for all."""
    config = TransportConfig(bodies_bytes_max=200_000, body_seconds=60)
    count = 100
    async with running(admit=admit, config=config) as transport:
        floods = [await transport.connect() for _ in range(3)]
        for client in floods:
            await frames_behind(
                client, frames.PREFACE + SETTINGS + with_long_heads(count, 3) + PING, [frames.PING]
            )
        honest = await transport.connect()
        for _ in range(20):
            await honest.send(post(BODY, "X-API-Key: owner")[:-1])
            await trio.testing.wait_all_tasks_blocked()
            await honest.send(BODY[-1:])
            assert (await honest.answer()).status == 200
        assert not transport.server.budgets["bodies"].refused


async def test_over_http2_a_head_without_a_key_is_answered_before_its_body():
    async with running(admit=admit) as transport:
        client = await transport.connect()
        last = await frames_behind(
            client, frames.PREFACE + SETTINGS + with_long_heads(1, 1), [frames.HEADERS]
        )
        assert status(last[frames.HEADERS][1]) == 401


async def test_over_http1_a_head_without_a_key_is_answered_before_its_body():
    async with running(admit=admit) as transport:
        for sent in (post(BODY)[:-10], post(BODY, "Expect: 100-continue")[: -len(BODY)]):
            client = await transport.connect()
            await client.send(sent)
            answer = await client.answer()
            assert (answer.status, answer.body, answer.informational) == (401, b"no key", ())
            assert answer.headers[b"connection"] == b"close"
            await client.stream.send_eof()
            assert await client.ends() == b""
        assert transport.server.budgets["bodies"].used == 0


async def test_a_whole_request_without_a_key_leaves_its_connection_open():
    async with running(admit=admit) as transport:
        client = await transport.connect()
        await client.send(post(b"short") + get("/", "X-API-Key: one"))
        assert [(await client.answer()).status for _ in range(2)] == [401, 200]


async def test_a_token_leaves_something_to_others():
    config = TransportConfig(bodies_bytes_max=200_000)
    async with running(admit=admit, config=config) as transport:
        greedy = [await transport.connect() for _ in range(3)]
        statuses = []
        for client in greedy:
            await client.send(post(BODY, "X-API-Key: one")[:-1])
            await client.arrived()
        assert (await greedy[-1].answer()).status == 503
        other = await transport.connect()
        await other.send(post(BODY, "X-API-Key: owner")[:-1])
        await other.arrived()
        for client in (other, *greedy[:2]):
            await client.send(BODY[-1:])
            statuses.append((await client.answer()).status)
        assert statuses == [200, 200, 200]
        assert transport.server.budgets["bodies"].refused == {Share.TOKEN: 1}


async def test_a_handler_may_find_whose_a_request_is_and_its_body_is_given_back_as_it_was_counted():
    """A signature is over the body, so it is checked behind it. Each such body stayed in the share of its address."""

    async def signed(request: Request) -> Response:
        request.holder = ONE
        return Response(200)

    config = TransportConfig(bodies_bytes_max=800_000)
    async with running(signed, config) as transport:
        client = await transport.connect()
        for _ in range(4):
            await client.send(post(BODY)[:-1])
            await client.arrived()
            await client.send(BODY[-1:])
            assert (await client.answer()).status == 200
        found = transport.server.budgets["bodies"]
        assert (found.used, found.refused) == (0, {})
        assert most(found, at_address("127.0.0.1")) == most(Budget(800_000), HERE)
        assert most(found, ONE) == most(Budget(800_000), ONE)


async def test_one_connection_leaves_something_to_others():
    """Whatever its key is: over HTTP/2 it has 250 bodies at once."""
    config = TransportConfig(bodies_bytes_max=800_000, body_bytes_max=20_000)
    encoder = hpack.Encoder()
    sent = frames.PREFACE + SETTINGS
    for stream_id in range(1, 21, 2):
        block = encoder.encode([(b":method", b"POST"), *PSEUDO[1:], (KEY, b"owner")])
        sent += frame(frames.HEADERS, 4, stream_id, block) + frame(frames.DATA, 0, stream_id, bytes(15_000))
    async with running(admit=admit, config=config) as transport:
        client = await transport.connect()
        last = await frames_behind(client, sent + PING, [frames.PING])
        assert status(last[frames.HEADERS][1]) == 503
        assert transport.server.budgets["bodies"].refused[Share.CONNECTION] >= 1
        assert transport.server.budgets["bodies"].used <= 100_000
