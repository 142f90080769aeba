"""Batches of offers."""

from datetime import timedelta

from forq_trio import ContentTooLarge, InvalidKey
from forq_trio.delayed import DelayedQueue, Scheduled
from forq_trio.model.limits import OFFER_BATCH_MAX
from support.actors import TrioClock

from .letters import A, B, C, Letter, after, take_all

CREATED, UPDATED, IGNORED = "created", "updated", "ignored"


async def outcomes(queue, *offers) -> list[str | None]:
    return [each.outcome for each in await queue.offer_batch(offers)]


async def test_d10_results_are_in_the_order_of_the_input_and_repeat_it(queue) -> None:
    offers = [Scheduled("b", A, after(1), input=7), Scheduled("a", B, after(1), input={"any": "thing"})]
    results = await queue.offer_batch(offers)
    assert [(each.message, each.input, each.outcome) for each in results] == [
        (offers[0], 7, CREATED),
        (offers[1], {"any": "thing"}, CREATED),
    ]


async def test_d11_d16_existing_keys_are_updated_unless_said_otherwise(queue, face) -> None:
    await queue.offer_or_update("k", A, after(1))
    assert await outcomes(queue, Scheduled("k", B, after(2)), Scheduled("n", C, after(2))) == [
        UPDATED,
        CREATED,
    ]
    await face.advance(2_000)
    assert (await queue.try_poll_many(5)).payload == [B, C]


async def test_d12_existing_keys_that_may_not_be_updated_are_ignored(queue) -> None:
    await queue.offer_or_update("k", A, after(0))
    offers = [Scheduled("n", C), Scheduled("k", B, after(5), can_update=False), Scheduled("m", C)]
    assert await outcomes(queue, *offers) == [CREATED, IGNORED, CREATED]
    assert (await queue.read("k")).payload == A
    assert (await queue.try_poll_many(5)).payload == [A, C, C]


async def test_d13_250_with_10_that_exist(queue) -> None:
    for number in range(0, 250, 25):
        await queue.offer_or_update(f"{number}", A)
    found = await outcomes(queue, *[Scheduled(f"{n}", B, can_update=False) for n in range(250)])
    assert (found.count(IGNORED), found.count(CREATED)) == (10, 240)
    assert [n for n, outcome in enumerate(found) if outcome == IGNORED] == list(range(0, 250, 25))
    assert sorted(await take_all(queue)) == sorted(f"{n}" for n in range(250))


async def test_d14_an_empty_batch(queue) -> None:
    assert await queue.offer_batch([]) == []


async def test_d15_a_key_twice_is_offered_twice_in_order(queue, face) -> None:
    same, later = Scheduled("k", A, after(1)), Scheduled("k", B, after(2))
    once = Scheduled("k", C, can_update=False)
    assert await outcomes(queue, same, later, later, once) == [CREATED, UPDATED, IGNORED, IGNORED]
    await face.advance(2_000)
    assert (await queue.try_poll_many(5)).payload == [B]


async def test_one_that_is_refused_does_not_affect_the_others(queue) -> None:
    offers = [Scheduled("", A), Scheduled("k", A), Scheduled("big", Letter("x" * 300_000))]
    results = await queue.offer_batch(offers)
    assert [each.outcome for each in results] == [None, CREATED, None]
    assert [type(each.error) for each in results] == [InvalidKey, type(None), ContentTooLarge]
    assert await take_all(queue) == ["k"]


async def test_more_than_one_request_takes(queue) -> None:
    count = OFFER_BATCH_MAX + 1
    found = await outcomes(queue, *[Scheduled(f"{n}", A) for n in range(count)])
    assert found == [CREATED] * count
    assert len(await take_all(queue)) + len(await take_all(queue)) == count


async def test_more_bytes_than_one_request_takes(queue) -> None:
    found = await outcomes(queue, *[Scheduled(f"{n}", Letter("é" * 100_000)) for n in range(30)])
    assert found == [CREATED] * 30


async def test_more_json_than_one_request_takes(face) -> None:
    queue = await DelayedQueue.create(face.methods, "mail", str, clock=TrioClock())
    found = await outcomes(queue, *[Scheduled(f"{n}", "\x01" * 200_000) for n in range(10)])
    assert found == [CREATED] * 10


async def test_one_that_no_request_can_carry_is_refused_alone(queue) -> None:
    results = await queue.offer_batch([Scheduled("a", A), Scheduled("huge", Letter("x" * 9_000_000))])
    assert [each.outcome for each in results] == [CREATED, None]
    assert isinstance(results[1].error, ContentTooLarge)


async def test_times_that_have_passed_are_at_once(queue) -> None:
    class SlowClock:
        def now_ms(self) -> int:
            return 0

    queue.clock = SlowClock()
    late, due = Scheduled("a", A, after(-60)), Scheduled("b", A, timedelta(0))
    assert await outcomes(queue, late, Scheduled("c", A, after(60)), due) == [CREATED] * 3
    assert sorted(await take_all(queue)) == ["a", "b"]
