"""POST /receive (S4, S6): fields, order, visibility, peek, shuffle."""

import pytest

from .harness import START_SECONDS, Api

FIELDS = [
    "message_id",
    "receipt_handle",
    "message_body",
    "md5_of_message_body",
    "priority",
    "approximate_receive_count",
    "approximate_first_receive_timestamp",
    "sent_timestamp",
    "sequence_number",
    "message_attributes",
]


async def test_a_message_has_the_fields_of_the_readme(api: Api):
    sent = await api.send("Hello", priority=3, message_attributes={"content_type": "text/plain"})
    api.clock.pass_seconds(5)
    (message,) = await api.receive()
    assert list(message) == FIELDS
    handle = message.pop("receipt_handle")
    assert len(handle) == 36
    assert message == sent | {
        "message_body": "Hello",
        "priority": 3,
        "approximate_receive_count": 1,
        "approximate_first_receive_timestamp": START_SECONDS + 5,
        "sent_timestamp": START_SECONDS,
        "message_attributes": {"content_type": "text/plain"},
    }


async def test_a_second_receive_counts_and_has_a_new_handle(api: Api):
    await api.send()
    (first,) = await api.receive(visibility_timeout=10)
    api.clock.pass_seconds(10)
    (second,) = await api.receive()
    assert second["approximate_receive_count"] == 2
    assert second["approximate_first_receive_timestamp"] == START_SECONDS
    assert second["receipt_handle"] != first["receipt_handle"]
    assert second["sequence_number"] == first["sequence_number"]


async def test_invisible_for_30_seconds_unless_it_says_otherwise(api: Api):
    await api.send()
    await api.receive()
    assert await api.length() == (0, 1)
    api.clock.pass_seconds(29.999)
    assert await api.receive() == []
    api.clock.pass_seconds(0.001)
    assert await api.texts(visibility_timeout=43_200) == ["m"]
    api.clock.pass_seconds(43_199)
    assert await api.receive() == []


async def test_a_visibility_timeout_of_0_leaves_the_message_visible(api: Api):
    """S4: received again and again, its count growing, the last handle the current one."""
    await api.send()
    first, second = [(await api.receive(visibility_timeout=0))[0] for _ in range(2)]
    assert (first["approximate_receive_count"], second["approximate_receive_count"]) == (1, 2)
    assert await api.length() == (1, 0)
    assert await api.error("delete", {"receipt_handles": [first["receipt_handle"]]}) == (404, "NotFound")
    assert await api.ok("delete", {"receipt_handles": [second["receipt_handle"]]}) == {"deleted": 1}


async def test_priority_then_first_in_first_out(api: Api):
    """S6."""
    for text, priority in (("a", 1), ("b", 1_000), ("c", 0), ("d", 1), ("e", None), ("f", 1_000)):
        await api.send(text, priority=priority)
    assert await api.texts(max_number_of_messages=10) == ["b", "f", "e", "a", "d", "c"]


async def test_a_lifo_queue_gives_the_newest_of_a_priority_first(api: Api):
    """S6: queues named *_lifo."""
    for text, priority in (("a", 1), ("b", 5), ("c", 1), ("d", 5)):
        await api.send(text, queue="jobs_lifo", priority=priority)
    assert await api.texts("jobs_lifo", max_number_of_messages=10) == ["d", "b", "c", "a"]


async def test_up_to_10_at_once(api: Api):
    for number in range(12):
        await api.send(str(number))
    assert await api.texts() == ["0"]
    assert await api.texts(max_number_of_messages=10) == [str(number) for number in range(1, 11)]
    assert await api.length() == (1, 11)


async def test_a_peek_has_no_side_effect_at_all(api: Api):
    """S4: no visibility change, no count, no handle; always the same one message."""
    await api.send("first", message_attributes={"a": "b"})
    await api.send("second")
    peeks = [await api.receive(peek=True, max_number_of_messages=10) for _ in range(3)]
    assert peeks[0] == peeks[1] == peeks[2]
    (message,) = peeks[0]
    assert list(message) == [field for field in FIELDS if field != "receipt_handle"]
    assert (message["message_body"], message["approximate_receive_count"]) == ("first", 0)
    assert message["approximate_first_receive_timestamp"] == 0
    assert await api.length() == (2, 0)
    assert (await api.receive())[0]["approximate_receive_count"] == 1
    assert [each["message_body"] for each in await api.receive(peek=True)] == ["second"]


@pytest.mark.parametrize("peek", [False, True])
async def test_shuffle_gives_any_visible_message(api: Api, peek: bool):
    """S4: not always the first; each of them is one that is there."""
    texts = {str(number) for number in range(8)}
    for text in sorted(texts):
        await api.send(text)
    seen = set()
    for _ in range(60):
        (text,) = await api.texts(shuffle=True, peek=peek, visibility_timeout=0, max_receives=10) or ("",)
        seen.add(text)
        if len(seen) == 3:
            break
    assert len(seen) == 3
    assert seen <= texts


async def test_shuffle_makes_invisible_what_it_gives(api: Api):
    for number in range(5):
        await api.send(str(number))
    got = [text for _ in range(5) for text in await api.texts(shuffle=True)]
    assert sorted(got) == ["0", "1", "2", "3", "4"]
    assert await api.texts(shuffle=True) == []


async def test_dequeue_is_receive(api: Api):
    await api.send()
    found = await api.ok("dequeue", {"queue_name": "q"})
    assert list(found["messages"][0]) == FIELDS[:-1]
    assert await api.ok("dequeue", {"queue_name": "q", "wait_time_seconds": 0}) == {"messages": []}


async def test_what_is_set_for_the_queue_is_its_default(api: Api):
    """S11, queue-level config: what a request does not say, the queue's own settings say; else the dialect's."""
    await api.broker.configure(
        "q",
        lease_ms=7_000,
        delay_ms=3_000,
        ttl_ms=50_000,
        deduplication_window_ms=9_000,
        dead_letter_queue="dead",
    )
    body = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "a"}
    await api.ok("send", body)
    assert await api.receive() == []
    api.clock.pass_seconds(3)
    assert await api.texts() == ["m"]
    api.clock.pass_seconds(6)
    assert await api.receive() == []
    await api.ok("send", body | {"message_body": "the id is free"})
    api.clock.pass_seconds(1)
    assert await api.texts(visibility_timeout=1) == ["m"]
    for _ in range(2):
        api.clock.pass_seconds(1)
        assert await api.texts(visibility_timeout=1, max_receives=10) != []
    api.clock.pass_seconds(60)
    await api.broker.healthcheck()
    (expired, later) = (await api.broker.lists.search("dead")).messages
    assert {expired.content, later.content} == {"m", "the id is free"}


async def test_poison_goes_where_the_queue_says_if_the_receive_says_nothing(api: Api):
    await api.broker.configure("q", dead_letter_queue="dead", max_attempts=2)
    await api.send("m")
    for _ in range(2):
        assert await api.texts(visibility_timeout=1) == ["m"]
        api.clock.pass_seconds(1)
    assert await api.receive() == []
    assert await api.texts("dead") == ["m"]
