"""Messages that were received too often (S4): to the dead-letter queue or deleted, and the safety net behind it."""

import pytest

from .harness import Api

DEAD = {"dead_letter_queue_name": "dead"}


async def receive_times(api: Api, times: int, **members: object) -> None:
    """Receive the message so often, its visibility ending each time."""
    for _ in range(times):
        assert len(await api.receive(visibility_timeout=0, **members)) == 1


async def test_received_more_than_max_receives_times_it_moves_with_its_count_reset(api: Api):
    sent = await api.send(message_attributes={"a": "b"}, priority=7)
    await receive_times(api, 4, **DEAD)
    assert await api.receive(**DEAD) == []
    assert await api.length("q") == (0, 0)
    (message,) = await api.receive("dead")
    assert message["approximate_receive_count"] == 1
    kept = ("message_id", "sequence_number", "md5_of_message_body")
    assert {name: message[name] for name in kept} == {name: sent[name] for name in kept}
    assert (message["priority"], message["message_attributes"]) == (7, {"a": "b"})


async def test_without_a_dead_letter_queue_it_is_deleted(api: Api):
    await api.send()
    await receive_times(api, 2, max_receives=2)
    assert await api.receive(max_receives=2) == []
    assert [each["count"] for each in await api.ok("queues", method="GET")] == [0]


async def test_each_consumer_says_for_itself_how_often(api: Api):
    await api.send()
    await receive_times(api, 3)
    assert len(await api.receive(max_receives=10, visibility_timeout=0)) == 1
    assert await api.receive(max_receives=1) == []


async def test_poison_messages_do_not_take_the_place_of_good_ones(api: Api):
    """S4: they are dealt with before the receive, which is filled with others."""
    for number in range(3):
        await api.send(f"poison {number}", priority=500)
    for _ in range(2):
        assert len(await api.receive(visibility_timeout=0, max_number_of_messages=3)) == 3
    for number in range(3):
        await api.send(f"good {number}")
    texts = await api.texts(max_number_of_messages=3, max_receives=2, **DEAD)
    assert texts == ["good 0", "good 1", "good 2"]
    assert await api.length("dead") == (3, 0)


async def test_a_full_dead_letter_queue_deletes_and_logs(api: Api, caplog: pytest.LogCaptureFixture):
    """S4: deleted, and a warning is logged."""
    api.serve(max_queue_length=1)
    await api.send("in the way", queue="dead")
    await api.send("poison")
    await receive_times(api, 1, **DEAD, max_receives=1)
    assert await api.receive(**DEAD, max_receives=1) == []
    assert await api.length("q") == (0, 0)
    assert await api.texts("dead", max_number_of_messages=10) == ["in the way"]
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "event='dead_letters.lost' queue='q' messages=1" in record.getMessage()


async def test_the_dead_letter_queue_is_a_queue_like_others(api: Api):
    await api.send()
    await receive_times(api, 1, max_receives=1, **DEAD)
    assert await api.receive(max_receives=1, **DEAD) == []
    await receive_times(api, 1, queue="dead", max_receives=1)
    assert await api.receive("dead", max_receives=1, dead_letter_queue_name="deader") == []
    assert await api.texts("deader") == ["m"]


async def test_a_peek_leaves_poison_alone(api: Api):
    await api.send()
    await receive_times(api, 4)
    assert [each["approximate_receive_count"] for each in await api.receive(peek=True)] == [4]
    assert await api.length() == (1, 0)


async def test_the_safety_net(api: Api):
    """S10: poison_max_receives deletes what consumers would go on receiving."""
    api.serve(poison_max_receives=5, default_max_receives=4)
    await api.send()
    await receive_times(api, 5, max_receives=10)
    assert await api.receive(max_receives=10) == []
    assert (
        (await api.broker.lists.search("q")).messages
        == (await api.broker.lists.search("q-dlq")).messages
        == []
    )


async def test_a_message_that_expires_is_deleted_not_moved(api: Api):
    await api.send(message_retention_period=60)
    api.clock.pass_seconds(61)
    assert await api.receive() == []
    assert (await api.broker.lists.search("q-dlq")).messages == []


async def test_what_forq_sent_keeps_forqs_rules(api: Api):
    """A message of another dialect fails into the dead-letter queue of its own rules."""
    await api.broker.produce("q", "m", max_attempts=2)
    await receive_times(api, 2, max_receives=10)
    assert await api.receive(max_receives=10) == []
    (message,) = (await api.broker.lists.search("q-dlq")).messages
    assert (message.status, message.source_queue) == ("ready", "q")
