"""One receipt, or its delivery, is settled or raises; several have a result each; anything else is a TypeError."""

import pytest

from forq_trio import MalformedReceipt, ReceiptNotCurrent, ReceiptResult

from .face import NOBODY, NOT_FOUND, RECEIPT_INVALID

SETTLE = ("ack", "nack", "extend", "release")


@pytest.fixture(params=SETTLE)
def settle(request, face):
    """A method that settles."""
    return getattr(face.methods, request.param)


@pytest.fixture(params=[False, True], ids=["a receipt", "a delivery"])
def given(request):
    """What names a delivery: its receipt, or itself."""
    return (lambda delivery: delivery) if request.param else (lambda delivery: delivery.receipt)


async def test_one_is_settled(face, settle, given) -> None:
    await face.send()
    delivery = await face.take()
    result = await settle("q", given(delivery))
    assert isinstance(result, ReceiptResult)
    assert (result.receipt, result.ok) == (delivery.receipt, True)


async def test_one_that_is_not_current_raises(face, settle, given) -> None:
    await face.send()
    delivery = await face.take()
    assert await face.ack(delivery.receipt) == [True]
    with pytest.raises(ReceiptNotCurrent) as refused:
        await settle("q", given(delivery))
    assert refused.value.code == NOT_FOUND
    assert await face.counts() == NOBODY


async def test_one_of_another_queue_raises(face, settle) -> None:
    await face.send()
    delivery = await face.take()
    with pytest.raises(ReceiptNotCurrent):
        await settle("another", delivery)
    assert (await face.counts()).processing == 1


async def test_text_that_is_no_receipt_raises(settle) -> None:
    with pytest.raises(MalformedReceipt) as refused:
        await settle("q", "not a receipt")
    assert refused.value.code == RECEIPT_INVALID


@pytest.mark.parametrize("many", [list, tuple, iter])
async def test_several_have_a_result_each(face, settle, many) -> None:
    for content in "ab":
        await face.send(content)
    first, second = await face.receive(most=2)
    results = await settle("q", many([first, second.receipt]))
    assert {(each.receipt, each.ok) for each in results} == {(first.receipt, True), (second.receipt, True)}


async def test_a_list_of_one_has_a_list_of_results(face, settle) -> None:
    await face.send()
    delivery = await face.take()
    await face.ack(delivery.receipt)
    (result,) = await settle("q", [delivery])
    assert (result.receipt, result.ok, result.code) == (delivery.receipt, False, NOT_FOUND)


async def test_anything_else_is_a_type_error(face, settle) -> None:
    await face.send()
    await face.take()
    for wrong in (None, 7, b"receipt", {"receipt": 1}, [None], [b"x"], [["x"]]):
        with pytest.raises(TypeError, match="Delivery"):
            await settle("q", wrong)
        assert (await face.counts()).processing == 1
