"""What one does to a queue as a whole: settings, pause and resume, purge, removal."""

import pytest
import trio

from forq_trio import NewMessage
from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueSettings
from support.settings import EVERYTHING

from .face import NOBODY, NOT_EMPTY, QUEUE_INVALID, SETTING_INVALID
from .running import open_face
from .waiter import park, park_poll
from .words import SECOND, code_of, contents

NOTHING_SET = {name: None for name in QueueSettings.__struct_fields__} | {"paused": False}
SHOWN = {**EVERYTHING, "paused": False}


async def test_settings_are_changed_one_by_one(face) -> None:
    assert await code_of(face.settings()) == "not_found.queue"
    await face.send()
    assert await face.settings() == NOTHING_SET
    defaults = await face.rules()
    await face.configure(**EVERYTHING)
    assert await face.settings() == {**SHOWN, "table": None, "sqs": None}
    assert await face.rules() == SHOWN
    for name in EVERYTHING:
        await face.configure(**{name: None})
        assert await face.settings() == {**SHOWN, "table": None, "sqs": None, name: None}
        assert await face.rules() == {**SHOWN, name: defaults[name]}
        await face.configure(**{name: EVERYTHING[name]})
    await face.forget_settings()
    assert await face.settings() == NOTHING_SET
    assert await face.rules() == defaults
    await face.purge()
    await face.remove()
    assert await face.queues() == []


async def test_settings_are_a_queues_own(face) -> None:
    await face.configure("a", lease_ms=SECOND)
    await face.send(queue="b")
    assert (await face.rules("b"))["lease_ms"] == limits.LEASE_MS_DEFAULT


@pytest.mark.parametrize("back_off", [(5, 6), EVERYTHING["back_off"]], ids=["list", "formula"])
async def test_settings_and_pauses_outlive_a_restart(kind, back_off, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    async with open_face(kind, url) as face:
        await face.configure(**{**EVERYTHING, "back_off": back_off})
        await face.send("x", "paused")
        await face.pause("paused")
        before = await face.settings(), await face.rules()
    async with open_face(kind, url) as face:
        assert (await face.settings(), await face.rules()) == before
        assert await face.has_nothing("paused")
        await face.resume("paused")
        await face.forget_settings()
        assert (await face.take("paused")).content == "x"
    async with open_face(kind, url) as face:
        assert await face.settings("paused") == NOTHING_SET
        assert await code_of(face.settings()) == "not_found.queue"


async def test_what_is_refused_changes_nothing(face) -> None:
    await face.configure(lease_ms=SECOND)
    before = await face.settings()
    for name, json, value in [
        ("lease_ms", "leaseMs", -1),
        ("max_messages", "maxMessages", 0),
        ("back_off", "backOff", ()),
        ("dead_letter_queue", "deadLetterQueue", "q"),
    ]:
        refused = face.configure(**{"ttl_ms": 1, name: value})
        assert await code_of(refused) == SETTING_INVALID + json
    assert await face.settings() == before
    assert await code_of(face.configure("no name", lease_ms=1)) == QUEUE_INVALID
    assert await code_of(face.settings("no name")) == QUEUE_INVALID


async def test_a_paused_queue_takes_messages_and_hands_out_none(face) -> None:
    await face.send("a")
    held = await face.take()
    await face.pause()
    await face.pause()
    await face.send("b")
    assert await face.has_nothing()
    assert await face.look() == ["b"]
    assert await face.ack(held.receipt) == [True]
    assert await face.counts() == QueueCounts(ready=1)
    await face.resume()
    await face.resume()
    assert (await face.take()).content == "b"


@pytest.mark.parametrize("parked", [park, park_poll], ids=["receive", "poll"])
async def test_a_resumed_queue_serves_who_waits(face, parked) -> None:
    await face.send("a")
    await face.pause()
    async with trio.open_nursery() as nursery:
        first, second = await parked(face, nursery), await parked(face, nursery)
        await face.advance(SECOND)
        assert await face.waiting() == 2
        await face.send("b")
        await face.resume()
        assert [await first.contents(), await second.contents()] == [["a"], ["b"]]


async def test_what_falls_due_in_a_pause_waits(face) -> None:
    await face.send("delayed", delay_ms=SECOND)
    await face.send("leased")
    await face.take(lease_ms=SECOND)
    await face.pause()
    await face.advance(SECOND)
    assert await face.has_nothing()
    assert await face.counts() == QueueCounts(ready=2)
    await face.resume()
    assert contents(await face.receive(most=2)) == ["delayed", "leased"]


async def test_a_purge_removes_whatever_is_there(face) -> None:
    for content in "abc":
        await face.send(content)
    held = await face.take()
    await face.nack((await face.take()).receipt)
    await face.send("x", "other")
    assert await face.purge() == 3
    assert await face.counts() == NOBODY
    assert await face.size() == 0
    assert await face.ack(held.receipt) == [False]
    assert await face.counts("other") == QueueCounts(ready=1)
    assert await face.purge() == 0


async def test_a_purge_of_more_than_one_transaction_takes(face) -> None:
    for _ in range(2):
        await face.send_many([NewMessage("x")] * limits.PRODUCE_BATCH_MAX)
    await face.send("y")
    assert await face.purge() == 2 * limits.PRODUCE_BATCH_MAX + 1
    await face.send("z")
    assert contents(await face.receive(most=10)) == ["z"]


async def test_an_empty_queue_is_forgotten(face) -> None:
    await face.configure(lease_ms=SECOND)
    await face.pause()
    await face.send()
    assert await code_of(face.remove()) == NOT_EMPTY
    assert (await face.settings())["lease_ms"] == SECOND
    await face.purge()
    await face.remove()
    assert await face.queues() == []
    assert await code_of(face.settings()) == await code_of(face.remove()) == "not_found.queue"
    await face.send("again")
    assert (await face.take()).content == "again"


async def test_looks_wait_and_take_from_nobody(face) -> None:
    looked: list[str] = []

    async def look() -> None:
        looked.extend(await face.look(wait_ms=limits.WAIT_MS_MAX))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        await face.advance(SECOND)
        assert looked == []
        await face.send("seen")
    assert looked == ["seen"]
    assert (await face.take()).attempts == 1


async def test_looks_in_vain_end_after_their_wait(face) -> None:
    done = trio.Event()

    async def look() -> None:
        started = trio.current_time()
        assert await face.look(wait_ms=SECOND) == []
        assert trio.current_time() - started >= SECOND / 1_000
        done.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        while not done.is_set():
            await face.advance(SECOND // 10)
