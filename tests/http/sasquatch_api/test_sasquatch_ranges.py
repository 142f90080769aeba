"""Every range and form of the contract, at its ends and beyond (S2-S5): numbers, names, lists, sizes, types."""

from typing import Any

import pytest

from .harness import Api

INVALID = (400, "InvalidRequest")
NOT_VALID = (400, "ValidationError")
UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"

SEND = {"queue_name": "q", "message_body": "m"}
RECEIVE = {"queue_name": "q", "wait_time_seconds": 0}
CHANGE = {"receipt_handles": [UUID]}

# endpoint, the rest of its body, member, lowest and highest value
RANGES = [
    ("send", SEND, "priority", 0, 1_000),
    ("send", SEND, "delay_seconds", 0, 43_200),
    ("send", SEND, "message_retention_period", 60, 1_209_600),
    ("send", SEND, "message_deduplication_time_period", 1, 43_200),
    ("receive", RECEIVE, "visibility_timeout", 0, 43_200),
    ("receive", {"queue_name": "full", "visibility_timeout": 0}, "wait_time_seconds", 0, 20),
    ("receive", RECEIVE, "max_number_of_messages", 1, 10),
    ("receive", RECEIVE, "max_receives", 1, 10),
    ("dequeue", RECEIVE, "visibility_timeout", 0, 43_200),
    ("change_visibility", CHANGE, "visibility_timeout", -43_200, 43_200),
]


@pytest.mark.parametrize(("endpoint", "body", "member", "low", "high"), RANGES)
async def test_every_number_has_its_range(
    api: Api, endpoint: str, body: dict[str, Any], member: str, low: int, high: int
):
    """S2, S4, S5: min - 1, min, max, max + 1, numbers of absurd size, what is no whole number; null is like absent."""
    await api.send("there is something: nobody has to wait", queue="full")
    for value in (low, high):
        response = await api.call(endpoint, body | {member: value})
        assert response.status == (404 if endpoint == "change_visibility" else 200)
    for value in (low - 1, high + 1, 10**30, -(10**30)):
        response = await api.call(endpoint, body | {member: value})
        assert response.status == 400
        assert b'"ValidationError"' in response.body
        assert member.encode() in response.body
    for value in ("5", 5.0, True, [5], {}):
        assert await api.error(endpoint, body | {member: value}) == INVALID, value
    if endpoint != "change_visibility":  # which has to have it
        assert (await api.call(endpoint, body | {member: None})).status == 200


NEEDED: list[tuple[str, dict[str, Any], str]] = [
    ("send", SEND, "queue_name"),
    ("send", SEND, "message_body"),
    ("send_batch", {"messages": [SEND]}, "messages"),
    ("receive", RECEIVE, "queue_name"),
    ("dequeue", RECEIVE, "queue_name"),
    ("delete", {"receipt_handles": [UUID]}, "receipt_handles"),
    ("change_visibility", CHANGE | {"visibility_timeout": 1}, "receipt_handles"),
    ("change_visibility", CHANGE | {"visibility_timeout": 1}, "visibility_timeout"),
    ("queue_length", {"queue_name": "q"}, "queue_name"),
    ("delete_all", {"queue_name": "q"}, "queue_name"),
]


async def test_what_has_to_be_there(api: Api):
    """S1: a member that is missing or null is an InvalidRequest that names it."""
    for endpoint, body, missing in NEEDED:
        without = {name: value for name, value in body.items() if name != missing}
        for incomplete in (without, without | {missing: None}):
            assert await api.error(endpoint, incomplete) == INVALID
            assert missing.encode() in (await api.call(endpoint, incomplete)).body


async def test_what_is_no_json_of_the_endpoint(api: Api):
    for endpoint in dict.fromkeys(endpoint for endpoint, _, _ in NEEDED):
        for body in (
            *(b"", b"{", b"[]", b"null", b'"q"', b"{} {}"),
            *(b'{"x":"\xff"}', b'{"queue_name": 1}', b"[" * 9_999),
        ):
            assert await api.error(endpoint, body) == INVALID, (endpoint, body)


async def test_unknown_members_are_tolerated(api: Api):
    extra = {"unknown": {"deep": [1]}}
    await api.ok("send", SEND | extra)
    (message,) = await api.receive(**extra)
    handles = {"receipt_handles": [message["receipt_handle"]]}
    await api.ok("change_visibility", handles | {"visibility_timeout": 9} | extra)
    await api.ok("delete", handles | extra)
    await api.ok("send_batch", {"messages": [SEND | extra]} | extra)
    await api.ok("queue_length", {"queue_name": "q"} | extra)
    await api.ok("delete_all", {"queue_name": "q"} | extra)


async def test_queue_names(api: Api):
    for name in ("a", "A-z_09", "x" * 64, "q-dlq", "x" * 64 + "-dlq", "jobs_lifo"):
        await api.send(queue=name)
        assert await api.texts(name) == ["m"]


async def test_names_that_nothing_is_sent_to(api: Api):
    """S2: alphanumeric, hyphens, underscores."""
    for name in ("", " ", "x" * 65, "a b", "a.b", "a/b", "é", "q\n", "*"):
        assert await api.error("send", SEND | {"queue_name": name}) == NOT_VALID, name


async def test_queues_of_other_dialects_can_be_reached(api: Api):
    await api.broker.produce("a.b", "m")
    for endpoint in ("receive", "queue_length", "delete_all"):
        assert await api.error(endpoint, {"queue_name": "a b"}) == NOT_VALID
        await api.ok(endpoint, {"queue_name": "a.b"})


async def test_deduplication_ids(api: Api):
    """S2: alphanumeric, at most 128."""
    for fine in ("a", "A9" * 64):
        await api.send(message_deduplication_id=fine)
    for bad in ("", "x" * 129, "a-b", "a b", "é", "a\n"):
        assert await api.error("send", SEND | {"message_deduplication_id": bad}) == NOT_VALID
    assert await api.error("send", SEND | {"message_deduplication_id": 1}) == INVALID


async def test_attributes(api: Api):
    """S2: at most 10; keys of 1 to 64, values of at most 1,024 characters."""
    for fine in ({f"k{n}": "v" for n in range(10)}, {"k" * 64: "é" * 1_024}, {"k": ""}):
        await api.send(message_attributes=fine)
        assert (await api.receive())[0]["message_attributes"] == fine
    for bad in ({f"k{n}": "v" for n in range(11)}, {"": "v"}, {"k" * 65: "v"}, {"k": "v" * 1_025}):
        assert await api.error("send", SEND | {"message_attributes": bad}) == NOT_VALID
    for wrong in ([], "a", {"k": 1}, {"k": None}, {"k": {"StringValue": "v"}}):
        assert await api.error("send", SEND | {"message_attributes": wrong}) == INVALID


async def test_no_attributes_are_omitted(api: Api):
    """README, Message Attributes: without any, the member is not there."""
    for none in ({}, {"message_attributes": {}}, {"message_attributes": None}):
        await api.send(**none)
        assert "message_attributes" not in (await api.receive())[0]


@pytest.mark.parametrize("kb", [1, 10_240])
async def test_the_size_of_a_message(api: Api, kb: int):
    """S2, S10: the body counts, in bytes of UTF-8, up to the setting, which goes from 1 KB to 10 MB."""
    api.serve(max_message_size_kb=kb)
    await api.send("x" * (kb * 1_024), message_attributes={"k": "v" * 1_024})
    await api.send("é" * (kb * 512))
    for text in ("x" * (kb * 1_024 + 1), "é" * (kb * 512) + "x"):
        assert await api.error("send", SEND | {"message_body": text}) == (413, "MessageSizeExceeded")
    assert (await api.call("enqueue?queue_name=q", b"x" * (kb * 1_024))).status == 200
    assert await api.error("enqueue?queue_name=q", b"x" * (kb * 1_024 + 1)) == (413, "MessageSizeExceeded")


async def test_a_message_of_full_length_in_its_longest_json(api: Api):
    api.serve(max_message_size_kb=1)
    attributes = b",".join(b'"%03d":"%b"' % (n, b"\\u0001" * 1_024) for n in range(10))
    body = b'{"queue_name":"q","message_body":"%b","message_attributes":{%b}}' % (
        b"\\u0001" * 1_024,
        attributes,
    )
    assert (await api.call("send", body)).status == 200
    assert len((await api.receive())[0]["message_body"]) == 1_024


async def test_the_size_of_a_request(api: Api):
    """README, Request Body Limits."""
    api.serve(max_request_body_size_kb=1, max_message_size_kb=1)
    assert await api.error("receive", {"queue_name": "q", "x": "y" * 1_024}) == (413, "MessageSizeExceeded")
    for endpoint in ("delete", "change_visibility", "queue_length", "delete_all", "dequeue"):
        assert (await api.call(endpoint, b" " * 1_025)).status == 413
        assert (await api.call(endpoint, b" " * 1_024)).status == 400
    batch = {"messages": [SEND | {"message_body": "x" * 1_024}] * 10}
    assert len((await api.ok("send_batch", batch))["successful"]) == 10
    assert (await api.call("send", b" " * 300_000)).status == 413
    assert (await api.call("send_batch", b" " * 3_000_000)).status == 413


@pytest.mark.parametrize(
    ("endpoint", "member", "entry"), [("send_batch", "messages", SEND), ("delete", "receipt_handles", UUID)]
)
async def test_lists_have_1_to_10_entries(api: Api, endpoint: str, member: str, entry: object):
    """S3, S5."""
    for count in (0, 11):
        assert await api.error(endpoint, {member: [entry] * count}) == NOT_VALID
    for count in (1, 10):
        assert (await api.call(endpoint, {member: [entry] * count})).status in (200, 404)
    assert await api.error(endpoint, {member: entry}) == INVALID


@pytest.mark.parametrize("endpoint", ["delete", "change_visibility"])
async def test_handles_are_uuids(api: Api, endpoint: str):
    body = {"visibility_timeout": 1}
    assert await api.error(endpoint, body | {"receipt_handles": [UUID, "nonsense"]}) == NOT_VALID
    response = await api.call(endpoint, body | {"receipt_handles": ["nonsense"]})
    assert b"receipt_handles must be UUIDs" in response.body
    assert await api.error(endpoint, body | {"receipt_handles": [1]}) == INVALID
    assert await api.error(endpoint, body | {"receipt_handles": [UUID]}) == (404, "NotFound")


async def test_peek_and_the_dead_letter_queue(api: Api):
    """S4: no DLQ with peek, and the DLQ is another queue."""
    dead = {"dead_letter_queue_name": "dead"}
    assert await api.error("receive", RECEIVE | dead | {"peek": True}) == NOT_VALID
    assert await api.error("receive", RECEIVE | {"dead_letter_queue_name": "q"}) == NOT_VALID
    assert await api.error("receive", RECEIVE | {"dead_letter_queue_name": "a b"}) == NOT_VALID
    assert await api.receive(dead_letter_queue_name="", peek=True) == []
    for member in ("peek", "shuffle"):
        assert await api.error("receive", RECEIVE | {member: 1}) == INVALID


async def test_enqueue_has_its_values_in_the_query(api: Api):
    assert await api.error("enqueue", b"m") == INVALID
    assert await api.error("enqueue?queue_name=a+b", b"m") == NOT_VALID
    assert await api.error("enqueue?queue_name=q", b"\xff") == INVALID
    for bad in ("-1", "1001", "x", "", "1.0", "9" * 40):
        assert await api.error(f"enqueue?queue_name=q&priority={bad}", b"m") == NOT_VALID
    for fine in (0, 1_000):
        await api.ok(f"enqueue?queue_name=q&priority={fine}", b"m")
        assert (await api.receive(max_number_of_messages=10))[0]["priority"] == fine
