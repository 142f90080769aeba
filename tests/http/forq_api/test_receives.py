"""What a receive takes and answers beside Forq's own: order, peek, the queue's lease; by GET and by POST."""

from typing import Any

import pytest
import trio
import trio.testing

from forq_trio.model import limits
from forq_trio.model.messages.bodies import ReceivedMessage
from forq_trio.model.messages.types import Delivery
from support.forq_api import ASKING_FOR_MORE, START_MS, Api, json_of

ALWAYS = {"id", "content", "attempts", "sequence", "receivedAt", "priority", "firstReceivedAt"}
OF_LEASES = {"receipt", "leaseUntil"}
BOTH = pytest.mark.parametrize("method", ["GET", "POST"])
SENT = START_MS


async def receive(api: Api, method: str, **wanted: Any) -> list[dict[str, Any]]:
    """At most one message, by either endpoint. It waits as long as Forq's does."""
    if method == "POST":
        response = await api.call("POST", "q/messages/receive", {"waitMs": limits.WAIT_MS_MAX, **wanted})
        return json_of(response)["messages"]
    texts = {True: "true", False: "false"}
    query = "&".join(f"{name}={texts.get(value, value)}" for name, value in wanted.items())
    response = await api.call("GET", f"q/messages?{query}", headers=ASKING_FOR_MORE)
    return [json_of(response)] if response.body else []


def test_what_is_documented_is_what_is_answered():
    """A Delivery goes out as it is, and the document describes it as a ReceivedMessage."""
    fields = set(ReceivedMessage.__struct_encode_fields__)
    assert set(Delivery.__struct_encode_fields__) == fields
    assert fields == ALWAYS | OF_LEASES | {"attributes", "group", "key", "kind", "maxAttempts"}


@BOTH
async def test_what_a_message_comes_with(api: Api, method: str):
    await api.send("plain")
    await api.broker.produce("q", "rich", priority=7, attributes={"k": "v"}, group="g")
    (plain,) = await receive(api, method)
    assert plain.keys() == ALWAYS | OF_LEASES
    assert (plain["priority"], plain["firstReceivedAt"], plain["attempts"]) == (100, SENT, 1)
    (rich,) = await receive(api, method)
    assert rich.keys() == ALWAYS | OF_LEASES | {"attributes", "group"}
    assert (rich["priority"], rich["attributes"], rich["group"]) == (7, {"k": "v"}, "g")


async def test_a_lease_that_nobody_names_is_that_of_the_queue(api: Api):
    await api.broker.configure("q", lease_ms=1_234)
    await api.send("1", "2")
    for method in ("GET", "POST"):
        (message,) = await receive(api, method)
        assert message["leaseUntil"] == START_MS + 1_234
    body = {"receipts": [message["receipt"]]}
    (extended,) = json_of(await api.call("POST", "q/messages/extend", body))["results"]
    assert extended["leaseUntil"] == START_MS + 1_234


@BOTH
async def test_peeking_leases_nothing(api: Api, method: str):
    await api.broker.produce("q", "m", attributes={"k": "v"}, group="g")
    for _ in range(2):
        (message,) = await receive(api, method, peek=True)
        assert message.keys() == ALWAYS | {"attributes", "group"}
        assert (message["attempts"], message["firstReceivedAt"]) == (0, None)
    (leased,) = await receive(api, method, peek=False)
    assert (leased["id"], leased["attempts"]) == (message["id"], 1)


async def test_peeking_at_several(api: Api):
    await api.send(*"abc")
    assert [each["content"] for each in await receive(api, "POST", peek=True, max=2)] == ["a", "b"]
    assert api.broker.known.counts()["q"].ready == 3


@BOTH
async def test_peeking_in_vain(api: Api, method: str, autojump_clock: trio.testing.MockClock):
    """Within the time that a receive would wait, too."""
    assert await receive(api, method, peek=True) == []
    assert trio.current_time() >= limits.WAIT_MS_MAX / 1_000


async def test_peeking_without_a_wait(api: Api, mock_clock: trio.testing.MockClock):
    assert await receive(api, "POST", peek=True, waitMs=0) == []
    assert trio.current_time() == 0


@BOTH
async def test_messages_come_in_the_order_that_is_named(api: Api, method: str):
    sent = [str(number) for number in range(40)]
    await api.send(*sent)
    seen = {(await receive(api, method, order="shuffle", peek=True))[0]["content"] for _ in sent}
    assert len(seen) > 1
    assert [(await receive(api, method, order="fifo"))[0]["content"] for _ in range(3)] == sent[:3]
    got = [(await receive(api, method, order="shuffle"))[0]["content"] for _ in sent[3:]]
    assert sorted(got, key=int) == sent[3:]
    assert got != sent[3:]


async def test_orders_that_are_none(api: Api):
    await api.send("m")
    for order in ("", "FIFO", "lifo", "fifo,shuffle", "1", "%FF"):
        assert await api.code("GET", f"q/messages?order={order}") == (400, "bad_request.order.invalid")
    for wrong in ("", "FIFO", "lifo", None, 1, True, ["fifo"]):
        body = {"order": wrong}
        assert await api.code("POST", "q/messages/receive", body) == (400, "bad_request.body.invalid")


async def test_peeks_that_are_none(api: Api):
    await api.send("m")
    for peek in ("", "TRUE", "1", "0", "yes", "null", "%FF"):
        assert await api.code("GET", f"q/messages?peek={peek}") == (400, "bad_request.peek.invalid")
    for wrong in ("", None, 1, 0, "true", []):
        assert await api.code("POST", "q/messages/receive", {"peek": wrong}) == (
            400,
            "bad_request.body.invalid",
        )


async def test_queries_of_forqs_own_receive(api: Api):
    """What it does not know is ignored, as Forq does; of what is repeated the last one counts."""
    await api.send("m")
    for query in ("?", "?x=1&y", "?order=shuffle&order=fifo&peek=false&peek=true"):
        response = await api.call("GET", f"q/messages{query}")
        assert response.status == 200
        await api.broker.purge("q")
        await api.send("m")


async def test_ranges_hold_for_looks_as_well(api: Api):
    for member, value in (("max", 0), ("max", 101), ("waitMs", -1), ("waitMs", 30_001), ("leaseMs", -1)):
        assert await api.code("POST", "q/messages/receive", {"peek": True, member: value}) == (
            400,
            f"bad_request.{member}.out_of_range",
        )


async def test_a_message_tells_of_its_failures(api: Api):
    await api.send("m")
    for number, reason in enumerate(["first", None], 1):
        (message,) = await receive(api, "POST")
        body = {"receipts": [message["receipt"]], "delayMs": 0, "reason": reason}
        await api.call("POST", "q/messages/nack", body)
        api.clock.ms += number
    view = json_of(await api.call("GET", f"q/messages/{message['id']}"))
    assert view["failures"] == [
        {"attempt": 1, "at": START_MS, "reason": "first"},
        {"attempt": 2, "at": START_MS + 1, "reason": None},
    ]
    assert (view["lastError"], view["firstReceivedAt"], view["attempts"]) == ("first", START_MS, 2)


async def test_where_takes_only_what_matches(api):
    for region in ("us", "eu"):
        message = {"content": region, "attributes": {"region": region}}
        await api.call("POST", "q/messages/batch", {"messages": [message]})
    wanted = {"max": 5, "where": {"region": {"not": "us"}, "tier": {"not": "free", "orAbsent": True}}}
    found = json_of(await api.call("POST", "q/messages/receive", wanted))["messages"]
    assert [message["content"] for message in found] == ["eu"]


async def test_bad_conditions_are_refused(api):
    for body in (
        {"where": {"region": {"like": "e"}}},
        {"where": {"region": 5}},
        {"where": {str(number): "x" for number in range(11)}},
        {"where": {"region": "eu"}, "order": "shuffle"},
        {"where": {"region": "eu"}, "peek": True},
    ):
        status, code = await api.code("POST", "q/messages/receive", body)
        assert status == 400, body
        assert code.startswith("bad_request")
