"""What a send takes beside Forq's own members, alone and in batches: every range at and past its ends."""

from typing import Any

import msgspec
import pytest

from forq_trio.http.forq_api.sends import OUR_MEMBERS
from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from support.forq_api import ASKING_FOR_MORE, START_MS, Api, blamed, json_of

EVERYTHING = {
    "content": "m",
    "priority": 900,
    "delayMs": 50,
    "ttlMs": 5_000,
    "attributes": {"colour": "red"},
    "deduplicationId": "d",
    "deduplicationWindowMs": 60_000,
    "group": "g",
    "maxAttempts": 3,
    "deadLetterQueue": "graveyard",
}


async def alone(api: Api, message: Any) -> tuple[int, dict[str, Any]]:
    """Status and body of the answer to a send of one message, of a client that asks for more than Forq's."""
    response = await api.call("POST", "q/messages", message, ASKING_FOR_MORE)
    return response.status, json_of(response) if response.body else {}


async def in_a_batch(api: Api, message: Any) -> dict[str, Any]:
    """The result of a message that is the only one of its batch."""
    raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
    response = await api.call("POST", "q/messages/batch", b'{"messages":[' + raw + b"]}")
    assert response.status == 200
    (result,) = json_of(response)["results"]
    return result


async def is_refused(api: Api, message: Any, answer: dict[str, str]) -> None:
    """Either way of sending refuses it, and nothing is stored."""
    before = api.broker.known.counts()
    status, error = await alone(api, message)
    assert (status, blamed(error)) == (400, answer)
    assert await in_a_batch(api, message) == error
    assert api.broker.known.counts() == before


@pytest.mark.parametrize("batch", [False, True], ids=["alone", "in a batch"])
async def test_every_member_arrives(api: Api, batch: bool):
    if batch:
        assert (await in_a_batch(api, EVERYTHING)).keys() == {"id", "sequence"}
    else:
        assert await alone(api, EVERYTHING) == (204, {})
    (stored,) = (await api.broker.lists.search("q")).messages
    assert (stored.priority, stored.process_after, stored.ttl_ms) == (900, START_MS + 50, 5_000)
    assert (stored.attributes, stored.group) == ({"colour": "red"}, "g")
    assert (stored.max_attempts, stored.dead_letter_queue) == (3, "graveyard")
    assert stored.expires_after == START_MS + 5_050
    assert (await in_a_batch(api, EVERYTHING))["duplicate"] is True


def test_every_member_of_a_message_can_be_sent():
    theirs = {"content", "process_after"}
    assert len(OUR_MEMBERS) == len(set(NewMessage.__struct_fields__) - theirs)
    assert EVERYTHING.keys() - {"content"} == OUR_MEMBERS


async def test_null_is_a_member_that_is_not_there(api: Api):
    message = {name: None for name in EVERYTHING if name not in ("content", "priority")}
    assert await alone(api, {"content": "m", "processAfter": None, **message}) == (204, {})
    assert (await api.broker.peek("q"))[0].group is None


RANGES = [
    ("priority", limits.PRIORITY_MIN, limits.PRIORITY_MAX),
    ("delayMs", 0, limits.DELAY_MS_MAX),
    ("ttlMs", 1, limits.TTL_MS_MAX),
    ("deduplicationWindowMs", 1, limits.DEDUPLICATION_WINDOW_MS_MAX),
    ("maxAttempts", 1, limits.MAX_ATTEMPTS_MAX),
]


@pytest.mark.parametrize(("member", "low", "high"), RANGES)
async def test_ranges(api: Api, member: str, low: int, high: int):
    for value in (low, low + 1, high - 1, high):
        assert await alone(api, {"content": "m", member: value}) == (204, {})
        assert "id" in await in_a_batch(api, {"content": "m", member: value})
    for value in (low - 1, high + 1, -(2**63), 2**64, 10**300):
        message = b'{"content":"m","%b":%d}' % (member.encode(), value)
        refusal = {"code": f"bad_request.{member}.out_of_range", "field": f"$.{member}"}
        await is_refused(api, message, refusal)


TEXTS = [("group", limits.GROUP_LENGTH_MAX), ("deduplicationId", limits.DEDUPLICATION_ID_LENGTH_MAX)]


@pytest.mark.parametrize(("member", "longest"), TEXTS)
async def test_lengths(api: Api, member: str, longest: int):
    for text in ("x", "ü" * longest, "😀" * (longest - 1)):
        assert await alone(api, {"content": "m", member: text}) == (204, {})
    for text in ("", "x" * (longest + 1)):
        refusal = {"code": f"bad_request.body.{member}.invalid", "field": f"$.{member}"}
        await is_refused(api, {"content": "m", member: text}, refusal)


KEY = limits.ATTRIBUTE_KEY_LENGTH_MAX
VALUE = limits.ATTRIBUTE_VALUE_LENGTH_MAX


async def test_attributes(api: Api):
    many = {str(number): "v" for number in range(limits.ATTRIBUTES_MAX)}
    for attributes in ({}, {"k": ""}, {"ü" * KEY: "ü" * VALUE}, many):
        assert await alone(api, {"content": "m", "attributes": attributes}) == (204, {})
        assert (await api.receive()).get("attributes", {}) == attributes


async def test_attributes_that_are_too_much(api: Api):
    for attributes in (
        {"": "v"},
        {"k" * (KEY + 1): "v"},
        {"k": "v" * (VALUE + 1)},
        {str(number): "v" for number in range(limits.ATTRIBUTES_MAX + 1)},
    ):
        await is_refused(
            api,
            {"content": "m", "attributes": attributes},
            {"code": "bad_request.body.attributes.invalid", "field": "$.attributes"},
        )


async def test_names_of_dead_letter_queues(api: Api):
    for name in ("", "a", "x" * 64, "other-dlq"):
        assert await alone(api, {"content": "m", "deadLetterQueue": name}) == (204, {})
    for name in (" ", "a/b", "x" * 65, "ü"):
        await is_refused(
            api,
            {"content": "m", "deadLetterQueue": name},
            {"code": "bad_request.body.deadLetterQueue.invalid", "field": "$.deadLetterQueue"},
        )


async def test_due_times_exclude_each_other(api: Api):
    await is_refused(
        api,
        {"content": "m", "processAfter": START_MS, "delayMs": 0},
        {"code": "bad_request.body.processAfter.with_delayMs", "field": "$.processAfter"},
    )


NUMBERS = [member for member, _, _ in RANGES]
NO_NUMBERS = [b'"1"', b"1.0", b"1.5", b"1e1", b"true", b"[1]", b"{}"]
NO_TEXTS = [b"1", b"true", b'["x"]', b"{}"]
NO_PAIRS = [b"1", b'"x"', b"[]", b'[["k","v"]]', b'{"k":1}', b'{"k":null}', b'{"k":{}}', b'{"k":true}']
WRONG_TYPES = [
    *[(member, value) for member in NUMBERS for value in NO_NUMBERS],
    *[
        (member, value)
        for member in ("group", "deduplicationId", "deadLetterQueue", "content")
        for value in NO_TEXTS
    ],
    *[("attributes", value) for value in NO_PAIRS],
    ("priority", b"null"),
]


async def test_wrong_types(api: Api):
    for member, value in WRONG_TYPES:
        content = b"" if member == "content" else b'"content":"m",'
        message = b'{%b"%b":%b}' % (content, member.encode(), value)
        await is_refused(api, message, {"code": "bad_request.body.invalid", "field": f"$.{member}"})


async def test_forqs_own_send_ignores_what_it_does_not_know(api: Api):
    for message in (
        {"content": "m", "prioritty": 9},
        {"content": "m", "processAfter": START_MS, "Priority": [], "": {}},
    ):
        assert await alone(api, message) == (204, {})
    assert api.broker.known.counts()["q"].ready == 2


async def test_a_send_with_our_members_may_have_no_unknown_ones(api: Api):
    refusal = {"code": "bad_request.body.unknown_field", "field": "$.prioritty"}
    for ours in sorted(OUR_MEMBERS):
        for message in (
            {"content": "m", "prioritty": 9, ours: EVERYTHING[ours]},
            {ours: EVERYTHING[ours], "content": "m", "prioritty": 9},
        ):
            await is_refused(api, message, refusal)


async def test_unknown_members_in_batches(api: Api):
    refusal = {"code": "bad_request.body.unknown_field", "field": "$.x"}
    assert blamed(await in_a_batch(api, {"content": "m", "x": 1})) == refusal
    good = {"content": "m"}
    response = await api.call("POST", "q/messages/batch", {"messages": [good, {**good, "x": 1}, good]})
    assert [result.get("field") for result in json_of(response)["results"]] == [None, "$.x", None]
    response = await api.call("POST", "q/messages/batch", {"messages": [good], "x": 1})
    assert (response.status, blamed(json_of(response))) == (400, refusal)
    assert api.broker.known.counts()["q"].ready == 2


async def test_names_of_unknown_members_come_back_as_they_were(api: Api):
    for name in ("", "`", "a`b", "ü", '"', "x" * 98):
        result = await in_a_batch(api, {"content": "m", name: 1})
        assert blamed(result) == {"code": "bad_request.body.unknown_field", "field": f"$.{name}"}


async def test_names_of_unknown_members_are_cut_and_made_printable(api: Api):
    assert (await in_a_batch(api, {"content": "m", "x" * 100_000: 1}))["field"] == f"$.{'x' * 97}…"
    assert (await in_a_batch(api, {"content": "m", "\n\x1b[": 1}))["field"] == "$.\\n\\x1b["


async def test_a_duplicate_is_answered_like_the_first(api: Api):
    message = {"content": "m", "deduplicationId": "d"}
    assert await alone(api, message) == await alone(api, message) == (204, {})
    assert api.broker.known.counts()["q"].ready == 1
    (stored,) = await api.broker.peek("q")
    again = {"id": stored.id, "sequence": stored.sequence, "duplicate": True}
    assert await in_a_batch(api, message) == again
    response = await api.call(
        "POST", "q/messages/batch", {"messages": [{**message, "deduplicationId": "e"}] * 2}
    )
    first, second = json_of(response)["results"]
    assert second == {**first, "duplicate": True}


async def test_a_full_queue(api: Api):
    await api.broker.configure("q", max_messages=2)
    await api.send("1")
    full = (503, "forq.queue_full")
    batch = await api.call("POST", "q/messages/batch", {"messages": [{"content": "2"}, {"content": "3"}]})
    assert (batch.status, json_of(batch)["code"]) == full
    await api.send("2")
    response = await api.call("POST", "q/messages", {"content": "3"}, ASKING_FOR_MORE)
    assert (response.status, json_of(response)["code"]) == full
    assert response.headers == batch.headers == ((b"retry-after", b"1"),)
    assert [message.content for message in (await api.broker.lists.search("q")).messages] == ["2", "1"]
