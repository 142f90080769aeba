"""Who sends and who receives, in which dialect, under which bounds: after how many deliveries is a message where?

A consumer's default never overrides what the message, its queue or its sender's dialect says; nothing that has a
dead-letter queue is deleted.
"""

import pytest

from .harness import Api

DELETED = "deleted"
RECEIVERS = {
    "forq": None,
    "plain": {},
    "2 receives": {"max_receives": 2},
    "2 receives, then dead": {"max_receives": 2, "dead_letter_queue_name": "dead"},
    "dead": {"dead_letter_queue_name": "dead"},
}
# By sender and bounds: the end for each of the receivers.
ENDS = {
    ("forq", "none"): [(5, "q-dlq"), (5, "q-dlq"), (2, "q-dlq"), (2, "dead"), (5, "q-dlq")],
    ("forq", "message"): [(3, "grave"), (3, "grave"), (2, "grave"), (2, "dead"), (3, "grave")],
    ("forq", "queue"): [(3, "grave"), (3, "grave"), (2, "grave"), (2, "dead"), (3, "grave")],
    ("sasquatch", "none"): [(100, DELETED), (4, DELETED), (2, DELETED), (2, "dead"), (4, "dead")],
    ("sasquatch", "queue"): [(3, "grave"), (3, "grave"), (2, "grave"), (2, "dead"), (3, "grave")],
    ("sasquatch", "queue's queue"): [(100, "grave"), (4, "grave"), (2, "grave"), (2, "dead"), (4, "dead")],
    ("sasquatch", "queue's attempts"): [(3, DELETED), (3, DELETED), (2, DELETED), (2, "dead"), (3, DELETED)],
}
SETTINGS = {
    "queue": {"max_attempts": 3, "dead_letter_queue": "grave"},
    "queue's queue": {"dead_letter_queue": "grave"},
    "queue's attempts": {"max_attempts": 3},
}
PLACES = ("q", "q-dlq", "grave", "dead")


async def life(api: Api, sender: str, bounds: str, receiver: str) -> tuple[int, str]:
    """Send a message and receive it until it is gone: how often it was delivered, and where it is."""
    if bounds in SETTINGS:
        await api.broker.configure("q", **SETTINGS[bounds])
    if sender == "forq":
        own = {"max_attempts": 3, "dead_letter_queue": "grave"} if bounds == "message" else {}
        await api.broker.produce("q", "m", **own)
    else:
        await api.send("m")
    deliveries = 0
    while await received(api, RECEIVERS[receiver]):
        deliveries += 1
    places = [queue for queue in PLACES if (await api.broker.lists.search(queue)).messages]
    (place,) = places or [DELETED]
    return deliveries, place


async def received(api: Api, members: dict[str, object] | None) -> bool:
    """Receive the message, its lease over at once; False if it is no longer there."""
    if members is None:
        return bool(await api.broker.receive("q", lease_ms=0, wait_ms=0))
    return bool(await api.receive(visibility_timeout=0, **members))


@pytest.mark.parametrize(("sender", "bounds"), ENDS)
async def test_a_message_ends_where_its_sender_and_its_queue_say(api: Api, sender, bounds):
    for receiver, expected in zip(RECEIVERS, ENDS[sender, bounds], strict=True):
        assert await life(api, sender, bounds, receiver) == expected, receiver
        for queue in api.broker.known.counts():
            await api.broker.purge(queue)


async def test_defaults_delete_nothing_of_forqs(api: Api):
    """The case that lost messages: one consumer of the other dialect, with default values."""
    await api.broker.produce("q", "precious")
    while await api.receive(visibility_timeout=0):
        pass
    assert [message.content for message in (await api.broker.lists.search("q-dlq")).messages] == ["precious"]


async def test_the_length_that_a_queue_is_set_to_counts_before_the_default(api: Api):
    api.serve(max_queue_length=1)
    await api.broker.configure("q", max_messages=3)
    for _ in range(3):
        await api.send()
    assert (await api.error("send", {"queue_name": "q", "message_body": "x"})) == (503, "QueueFull")
