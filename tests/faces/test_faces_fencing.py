"""Only the holder of the current receipt changes a message: contract F3, F4, F5.

Each test ends with a look: a refusal changes nothing.
"""

import pytest

from forq_trio import NewMessage

from .face import MESSAGE_ID_INVALID, NOBODY, NOT_FOUND, RECEIPT_INVALID
from .words import SECOND, code_of, fail

UNKNOWN = [
    "01890a5d-ac96-774b-bcce-b302099a8057",
    "00000000-0001-8000-8000-000000000000",
    "ffffffff-ffff-8fff-bfff-ffffffffffff",
]
MALFORMED = ["x", "01890a5d-ac96-774b-bcce", "01890a5dac96774bbcceb302099a8057", "{" + UNKNOWN[0] + "}"]
LEASE = 10 * SECOND

by_all_means = pytest.mark.parametrize("settle", ["ack", "nack", "extend", "release"])
by_id = pytest.mark.parametrize("settle", ["ack_by_id", "nack_by_id"])


async def refused(face, settle, receipt, queue="q") -> bool:
    """Whether `settle` does nothing for this receipt."""
    more = {"lease_ms": LEASE} if settle == "extend" else {}
    return await getattr(face, settle)(receipt, queue=queue, **more) in ([False], [None])


@by_all_means
async def test_f4_a_stale_receipt(face, settle) -> None:
    await face.send()
    stale = await face.take(lease_ms=LEASE)
    await face.advance(LEASE)
    current = await face.take()
    before = await face.message(current.id)
    assert await refused(face, settle, stale.receipt)
    assert await face.message(current.id) == before
    assert await face.ack(current.receipt) == [True]


@by_all_means
async def test_f4_a_receipt_that_was_used(face, settle) -> None:
    await face.send()
    used = await face.take()
    await face.nack(used.receipt)
    before = await face.message(used.id)
    assert await refused(face, settle, used.receipt)
    assert await face.message(used.id) == before


@by_all_means
@pytest.mark.parametrize("receipt", UNKNOWN)
async def test_f4_an_unknown_receipt(face, settle, receipt) -> None:
    await face.send()
    current = await face.take()
    before = await face.message(current.id)
    assert await refused(face, settle, receipt)
    assert await face.message(current.id) == before


@by_all_means
async def test_f4_a_receipt_with_one_digit_changed(face, settle) -> None:
    """Its message, its version, its token: each counts."""
    await face.send()
    current = await face.take()
    before = await face.message(current.id)
    for place in (12, 14, 35):
        digit = "4" if current.receipt[place] != "4" else "5"
        forged = current.receipt[:place] + digit + current.receipt[place + 1 :]
        assert await refused(face, settle, forged)
    assert await face.message(current.id) == before


@by_all_means
async def test_f4_a_receipt_shown_to_another_queue(face, settle) -> None:
    await face.send()
    await face.send(queue="other")
    current = await face.take()
    before = await face.message(current.id)
    assert await refused(face, settle, current.receipt, queue="other")
    assert await face.message(current.id) == before


@by_all_means
async def test_f7_a_receipt_of_a_message_that_became_a_dead_letter(face, settle) -> None:
    await face.send()
    await fail(face)
    dead = await face.take_when_there("q-dlq")
    await face.release(dead.receipt, queue="q-dlq")
    before = await face.message(dead.id, "q-dlq")
    assert await refused(face, settle, dead.receipt)
    assert await refused(face, settle, dead.receipt, queue="q-dlq")
    assert await face.message(dead.id, "q-dlq") == before


@by_id
async def test_f4_f5_by_id_a_stale_receipt(face, settle) -> None:
    await face.send()
    stale = await face.take(lease_ms=LEASE)
    await face.advance(LEASE)
    current = await face.take()
    before = await face.message(current.id)
    assert await code_of(getattr(face, settle)(stale.id, stale.receipt)) == NOT_FOUND
    assert await face.message(current.id) == before


@by_id
async def test_f4_f5_by_id_a_receipt_of_another_message(face, settle) -> None:
    for content in "ab":
        await face.send(content)
    a, b = await face.receive(most=2)
    before = await face.message(a.id), await face.message(b.id)
    assert await code_of(getattr(face, settle)(a.id, b.receipt)) == NOT_FOUND
    assert (await face.message(a.id), await face.message(b.id)) == before
    await face.ack_by_id(b.id, b.receipt)
    await face.ack_by_id(a.id, a.receipt)
    assert await face.counts() == NOBODY


@by_id
@pytest.mark.parametrize("receipt", UNKNOWN)
async def test_f4_f5_by_id_an_unknown_receipt(face, settle, receipt) -> None:
    await face.send()
    current = await face.take()
    assert await code_of(getattr(face, settle)(current.id, receipt)) == NOT_FOUND
    assert (await face.message(current.id)).status == "processing"


@by_id
@pytest.mark.parametrize("receipt", MALFORMED)
async def test_f4_f5_by_id_what_is_no_receipt(face, settle, receipt) -> None:
    await face.send()
    current = await face.take()
    assert await code_of(getattr(face, settle)(current.id, receipt)) == RECEIPT_INVALID
    assert (await face.message(current.id)).status == "processing"


@by_id
async def test_f4_f5_what_is_no_id(face, settle) -> None:
    for message_id in MALFORMED:
        assert await code_of(getattr(face, settle)(message_id)) == MESSAGE_ID_INVALID


async def test_a_late_ack_counts_until_somebody_else_claims(face) -> None:
    await face.send()
    late = await face.take(lease_ms=LEASE)
    await face.advance(LEASE)
    assert (await face.counts()).ready == 1
    await face.ack_by_id(late.id, late.receipt)
    assert await face.counts() == NOBODY


async def test_a_late_ack_does_not_count_after_another_claim(face) -> None:
    await face.send()
    late = await face.take(lease_ms=LEASE)
    await face.advance(LEASE)
    current = await face.take()
    assert current.receipt != late.receipt
    assert await code_of(face.ack_by_id(late.id, late.receipt)) == NOT_FOUND
    await face.ack_by_id(current.id, current.receipt)
    assert await face.counts() == NOBODY


async def test_f3_while_one_holds_a_message_nobody_else_gets_it(face) -> None:
    await face.send_many([NewMessage(str(number)) for number in range(20)])
    held: list[str] = []
    for most in (1, 7, 5, 100):
        held += [delivery.id for delivery in await face.receive(most=most)]
        assert len(set(held)) == len(held)
    assert len(held) == 20
    assert await face.has_nothing()
