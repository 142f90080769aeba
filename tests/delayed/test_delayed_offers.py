"""Offers of one message: created, updated, ignored."""

from datetime import datetime

import pytest

from forq_trio import InvalidKey
from forq_trio.delayed import DeliveryType

from .letters import MS, A, B, after, now, take


async def test_d01_a_new_key_is_created_and_waits_for_its_time(queue, face) -> None:
    assert await queue.offer_if_not_exists("k", A, after(10)) == "created"
    assert await queue.contains_message("k")
    assert await queue.try_poll() is None
    await face.advance(10_000)
    assert (await take(queue)).payload == A


async def test_d02_a_key_that_exists_is_ignored(queue, face) -> None:
    await queue.offer_if_not_exists("k", A, after(10))
    assert await queue.offer_if_not_exists("k", B, after(1)) == "ignored"
    await face.advance(9_999)
    assert await queue.try_poll() is None
    await face.advance(1)
    assert (await take(queue)).payload == A


async def test_d03_offer_or_update_creates(queue) -> None:
    assert await queue.offer_or_update("k", A, after(10)) == "created"


@pytest.mark.parametrize(("payload", "at"), [(B, 10), (A, 20)])
async def test_d04_another_payload_or_time_is_updated(queue, face, payload, at) -> None:
    await queue.offer_or_update("k", A, after(10))
    assert await queue.offer_or_update("k", payload, after(at)) == "updated"
    await face.advance(at * 1_000 - 1)
    assert await queue.try_poll() is None
    await face.advance(1)
    envelope = await take(queue)
    assert envelope.payload == payload
    await envelope.acknowledge()
    assert await queue.try_poll() is None


async def test_d05_the_same_to_the_millisecond_is_ignored(queue) -> None:
    await queue.offer_or_update("k", A, after(10))
    before = await queue.source.keyed_message(queue.name, "k", queue.kind)
    assert await queue.offer_or_update("k", A, after(10)) == "ignored"
    assert await queue.offer_or_update("k", A, after(10) + MS / 2) == "ignored"
    same = await queue.source.keyed_message(queue.name, "k", queue.kind)
    assert same.message.received_at == before.message.received_at
    assert same.message.keyed.revision == before.message.keyed.revision
    assert await queue.offer_or_update("k", A, after(10) + MS) == "updated"


async def test_d05_the_same_at_once_is_ignored_while_it_is_due(queue, face) -> None:
    await queue.offer_or_update("k", A)
    await face.advance(5)
    assert await queue.offer_or_update("k", A) == "ignored"
    assert await queue.offer_or_update("k", A, after(-3_600)) == "ignored"


async def test_a_time_that_has_passed_is_at_once(queue, face) -> None:
    assert await queue.offer_or_update("k", A, after(-3_600)) == "created"
    assert (await take(queue)).payload == A


async def test_a_time_that_has_passed_by_the_servers_clock_alone_is_at_once(queue, face) -> None:
    class SlowClock:
        def now_ms(self) -> int:
            return 0

    queue.clock = SlowClock()
    assert await queue.offer_or_update("k", A, after(-60)) == "created"
    assert (await take(queue)).payload == A


async def test_a_delay_counts_from_now(queue, face) -> None:
    await face.advance(500)
    assert await queue.offer_or_update("k", A, 1_000 * MS) == "created"
    await face.advance(999)
    assert await queue.try_poll() is None
    await face.advance(1)
    assert (await take(queue)).timestamp == after(1.5)


async def test_a_time_without_a_zone_is_refused_and_nothing_is_stored(queue) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        await queue.offer_or_update("k", A, datetime(2025, 1, 1))
    assert not await queue.contains_message("k")


KEYS = (
    "a/b_c%d'e\"f\\g",
    "..",
    ".",
    "%2F",
    "/",
    " ",
    "日本語 é 😀",
    "a?b#c&d=e+f",
    "x" * 200,
    "é" * 200,
    "\n\x01",
)


async def test_d08_a_key_comes_back_as_it_was(queue) -> None:
    for key in KEYS:
        assert await queue.offer_or_update(key, A) == "created"
        assert await queue.contains_message(key)
        assert (await queue.read(key)).message_id == key
        envelope = await take(queue)
        assert (envelope.message_id, envelope.delivery_type) == (key, DeliveryType.FIRST)
        await envelope.acknowledge()
        assert not await queue.contains_message(key)


async def test_d08_another_key_is_refused_clearly(queue) -> None:
    for key in ("", "x" * 201, "é" * 201, "a\0b", "\ud800"):
        for offer in (queue.offer_or_update, queue.offer_if_not_exists):
            with pytest.raises(InvalidKey):
                await offer(key, A)
    assert await queue.try_poll() is None


async def test_keys_that_differ_in_case_or_by_wildcards_are_several(queue) -> None:
    for key in ("a_b", "axb", "A_B", "a%", "ab"):
        assert await queue.offer_or_update(key, A, now()) == "created"
