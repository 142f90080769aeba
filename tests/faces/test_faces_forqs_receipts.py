"""F4 across the move: what Forq had handed out is settled here by the receipts that Forq gave, fenced like ours."""

import random

import pytest

from forq_trio.model.limits import LEASE_MS_DEFAULT
from support.actors import T0
from support.old_files import forq_rows, make_forq_file

from .face import NOT_FOUND, RECEIPT_INVALID
from .running import open_face
from .words import code_of

CLAIMED_AT = T0 - 1_000
RECEIPT = str(CLAIMED_AT)


@pytest.fixture
async def moved(kind, tmp_path):
    """A face of a file of Forq's with one message, which was claimed a second ago for the second time."""
    path = str(tmp_path / "forq.db")
    message_id = forq_rows(random.Random(7), 1)[0][0]
    times = CLAIMED_AT - 5, CLAIMED_AT, T0 + 86_400_000
    row = (message_id, "q", False, "work", 1, 2, CLAIMED_AT - 5, CLAIMED_AT, None, *times)
    make_forq_file(path, [row])
    async with open_face(kind, f"sqlite:///{path}") as face:
        yield face, message_id


async def test_an_ack_removes_it(moved) -> None:
    face, message_id = moved
    await face.ack_by_id(message_id, RECEIPT)
    assert (await face.counts()).total == 0
    assert await code_of(face.ack_by_id(message_id, RECEIPT)) == NOT_FOUND


async def test_a_nack_gives_it_back_with_its_back_off(moved) -> None:
    face, message_id = moved
    await face.nack_by_id(message_id, RECEIPT)
    message = await face.message(message_id)
    assert (message.status, message.attempts, message.process_after) == ("delayed", 2, T0 + 5_000)
    assert await code_of(face.nack_by_id(message_id, RECEIPT)) == NOT_FOUND


@pytest.mark.parametrize("settle", ["ack_by_id", "nack_by_id"])
@pytest.mark.parametrize("wrong", [str(CLAIMED_AT + 1), str(CLAIMED_AT - 1), "0", f"{CLAIMED_AT}0"])
async def test_another_number_does_nothing(moved, settle, wrong) -> None:
    face, message_id = moved
    assert await code_of(getattr(face, settle)(message_id, wrong)) == NOT_FOUND
    assert (await face.counts()).processing == 1


@pytest.mark.parametrize("wrong", [f"-{RECEIPT}", f"{RECEIPT}.0", "1" * 16, "1e3"])
async def test_what_is_no_number_of_forqs_is_malformed(moved, wrong) -> None:
    face, message_id = moved
    assert await code_of(face.ack_by_id(message_id, wrong)) == RECEIPT_INVALID


async def test_of_another_queue_or_message_it_does_nothing(moved) -> None:
    face, message_id = moved
    another = await face.send()
    assert await code_of(face.ack_by_id(message_id, RECEIPT, queue="another")) == NOT_FOUND
    assert await code_of(face.ack_by_id(another.id, RECEIPT)) == NOT_FOUND
    assert (await face.counts()).processing == 1


async def test_it_is_good_until_somebody_else_receives_the_message(moved) -> None:
    face, message_id = moved
    await face.advance(LEASE_MS_DEFAULT)
    assert (await face.counts()).ready == 1
    delivery = await face.take()
    assert (delivery.id, delivery.attempts) == (message_id, 3)
    assert await code_of(face.ack_by_id(message_id, RECEIPT)) == NOT_FOUND
    assert await face.ack(delivery.receipt) == [True]


async def test_after_the_lease_it_saves_a_second_delivery(moved) -> None:
    face, message_id = moved
    await face.advance(LEASE_MS_DEFAULT)
    await face.ack_by_id(message_id, RECEIPT)
    assert (await face.counts()).total == 0
