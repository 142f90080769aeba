"""POST /send, /send_batch and /enqueue (S2, S3, S7, S8)."""

import re
from hashlib import md5

from forq_trio.model import limits

from .harness import START_SECONDS, Api

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def test_the_answer_to_a_send(api: Api):
    """S2: message_id, md5_of_message_body, sequence_number, in this order."""
    first = await api.send("Hello, wörld!")
    assert list(first) == ["message_id", "md5_of_message_body", "sequence_number"]
    assert UUID.fullmatch(first["message_id"])
    assert first["md5_of_message_body"] == md5("Hello, wörld!".encode(), usedforsecurity=False).hexdigest()
    second = await api.send()
    assert second["sequence_number"] > first["sequence_number"] > 0


async def test_the_md5_of_the_readme(api: Api):
    """README, POST /send and /receive: the digest of "Hello, world!" as everybody computes it."""
    sent = await api.send("Hello, world!")
    assert sent["md5_of_message_body"] == "6cd3556deb0da54bca060b4c39479839"
    assert (await api.receive())[0]["md5_of_message_body"] == sent["md5_of_message_body"]


async def test_explicit_zeros_are_kept(api: Api):
    """S2, S4: priority, delay_seconds, visibility_timeout and wait_time_seconds of 0 are not "use the default"."""
    api.serve(default_priority=7, default_visibility_timeout=40, default_wait_time_seconds=20)
    await api.send("zero", priority=0, delay_seconds=0)
    await api.send("default")
    found = await api.receive(max_number_of_messages=10, visibility_timeout=0)
    assert [(each["message_body"], each["priority"]) for each in found] == [("default", 7), ("zero", 0)]
    assert await api.length() == (2, 0)
    assert await api.receive("empty", wait_time_seconds=0) == []


async def test_a_delay(api: Api):
    """S2: the message becomes visible after delay_seconds; meanwhile it does not count as visible."""
    await api.send(delay_seconds=10)
    assert await api.length() == (0, 0)
    api.clock.pass_seconds(9.999)
    assert await api.receive() == []
    api.clock.pass_seconds(0.001)
    (message,) = await api.receive()
    assert message["sent_timestamp"] == START_SECONDS


async def test_retention(api: Api):
    """S2: deleted after its period, 4 days unless it says otherwise; not moved anywhere."""
    await api.send("short", message_retention_period=60)
    await api.send("default")
    api.clock.pass_seconds(60)
    assert await api.texts(max_number_of_messages=10, visibility_timeout=0) == ["default"]
    api.clock.pass_seconds(345_600 - 60.001)
    assert await api.texts(visibility_timeout=0) == ["default"]
    api.clock.pass_seconds(1)
    assert await api.receive() == []
    assert {each["queue_name"]: each["count"] for each in await api.ok("queues", method="GET")} == {"q": 0}


async def test_a_message_in_flight_outlives_its_retention(api: Api):
    await api.send(message_retention_period=60)
    (message,) = await api.receive(visibility_timeout=100)
    api.clock.pass_seconds(99)
    assert await api.ok("delete", {"receipt_handles": [message["receipt_handle"]]}) == {"deleted": 1}


async def test_a_full_queue(api: Api):
    """S2, S10: QueueFull 503 with Retry-After at max_queue_length, whatever state the messages are in."""
    api.serve(max_queue_length=3)
    await api.send()
    await api.send(delay_seconds=60)
    await api.send()
    (message,) = await api.receive()
    full = await api.call("send", {"queue_name": "q", "message_body": "m"})
    assert full.status == 503
    assert (b"retry-after", b"1") in full.headers
    assert await api.error("send", {"queue_name": "q", "message_body": "m"}) == (503, "QueueFull")
    assert await api.error("enqueue?queue_name=q", b"m") == (503, "QueueFull")
    await api.send(queue="other")
    await api.ok("delete", {"receipt_handles": [message["receipt_handle"]]})
    await api.send()


async def test_deduplication_outlives_the_message(api: Api):
    """S7: the id holds after the delete until its period ends, then it is free; per queue; it has no length."""
    api.serve(max_queue_length=1)
    body = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "abc123"}
    first = await api.ok("send", body | {"message_deduplication_time_period": 100})
    assert await api.error("send", body) == (409, "DuplicateMessage")
    assert await api.error("send", body | {"message_body": "other"}) == (409, "DuplicateMessage")
    await api.ok("send", body | {"queue_name": "other"})
    (message,) = await api.receive()
    assert message["message_id"] == first["message_id"]
    await api.ok("delete", {"receipt_handles": [message["receipt_handle"]]})
    assert await api.length() == (0, 0)
    assert await api.error("send", body) == (409, "DuplicateMessage")
    await api.send("a tombstone does not fill the queue")
    await api.ok("delete_all", {"queue_name": "q"})
    api.clock.pass_seconds(99.999)
    assert await api.error("send", body) == (409, "DuplicateMessage")
    api.clock.pass_seconds(0.001)
    second = await api.ok("send", body)
    assert second["sequence_number"] > first["sequence_number"]


async def test_a_period_of_5_minutes_unless_it_says_otherwise(api: Api):
    """S7, S10: default_dedup_time_period; also while the message is still there the id becomes free."""
    body = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "a"}
    await api.ok("send", body)
    api.clock.pass_seconds(299.999)
    assert await api.error("send", body) == (409, "DuplicateMessage")
    api.clock.pass_seconds(0.001)
    await api.ok("send", body)
    assert await api.length() == (2, 0)


async def test_a_batch_each_message_alone(api: Api):
    """S3: index refers to the input; one that is bad does not keep the others from being sent."""
    api.serve(max_queue_length=2, max_message_size_kb=1)
    await api.send(queue="orders", message_deduplication_id="known")
    answer = await api.ok(
        "send_batch",
        {
            "messages": [
                {"queue_name": "orders", "message_body": "order-1", "priority": 100},
                {"queue_name": "orders", "message_body": "order-2", "message_deduplication_id": "known"},
                {"queue_name": "alerts", "message_body": "disk-full", "priority": 200},
                {"queue_name": "orders", "message_body": "one too many"},
                {"queue_name": "alerts"},
                {"queue_name": "alerts", "message_body": "m", "priority": 1_001},
                {"queue_name": "alerts", "message_body": "m", "priority": "high"},
                {"queue_name": "alerts", "message_body": "m" * 1_025},
                [],
                {"queue_name": "alerts", "message_body": "last", "message_attributes": {"source": "web"}},
            ]
        },
    )
    assert list(answer) == ["successful", "failed"]
    assert [each["index"] for each in answer["successful"]] == [0, 2, 9]
    assert [list(each) for each in answer["successful"]] == [
        ["index", "message_id", "md5_of_message_body", "sequence_number"]
    ] * 3
    assert [(each["index"], each["error"]["code"]) for each in answer["failed"]] == [
        (1, "DuplicateMessage"),
        (3, "QueueFull"),
        (4, "InvalidRequest"),
        (5, "ValidationError"),
        (6, "InvalidRequest"),
        (7, "MessageSizeExceeded"),
        (8, "InvalidRequest"),
    ]
    assert all(list(each) == ["index", "error"] and each["error"]["message"] for each in answer["failed"])
    alerts = await api.receive("alerts", max_number_of_messages=10)
    assert [each["message_body"] for each in alerts] == ["disk-full", "last"]
    assert alerts[1]["message_attributes"] == {"source": "web"}


async def test_a_batch_of_which_nothing_is_good_is_answered_all_the_same(api: Api):
    answer = await api.ok("send_batch", {"messages": [{}, {}]})
    assert (answer["successful"], [each["index"] for each in answer["failed"]]) == ([], [0, 1])


async def test_a_batch_is_one_commit(api: Api):
    """S3: the good ones are stored in one transaction; duplicates within the batch are seen."""
    message = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "a"}
    answer = await api.ok("send_batch", {"messages": [message, message]})
    assert [each["index"] for each in answer["successful"]] == [0]
    assert answer["failed"][0]["error"]["code"] == "DuplicateMessage"
    assert limits.SASQUATCH_BATCH_MAX <= limits.PRODUCE_BATCH_MAX


async def test_sequence_numbers_grow_also_after_a_drain(api: Api):
    """S8."""
    numbers = []
    for _ in range(3):
        numbers += [(await api.send())["sequence_number"] for _ in range(2)]
        await api.ok("delete_all", {"queue_name": "q"})
    assert numbers == sorted(set(numbers))


async def test_enqueue(api: Api):
    """README, Legacy Endpoints: queue_name and priority in the query, the raw body is the message."""
    answer = await api.ok("enqueue?queue_name=jobs&priority=5", '{"raw": "é"}'.encode())
    assert list(answer) == ["message_id", "md5_of_message_body", "sequence_number"]
    await api.ok("enqueue?queue_name=jobs", b"default")
    found = await api.ok(
        "dequeue", {"queue_name": "jobs", "max_number_of_messages": 10, "wait_time_seconds": 0}
    )
    assert [(each["message_body"], each["priority"]) for each in found["messages"]] == [
        ("default", 100),
        ('{"raw": "é"}', 5),
    ]
