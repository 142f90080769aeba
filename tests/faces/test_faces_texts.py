"""Content is text: what is not is refused with the way to send it, and JSON has methods of its own."""

import pytest

from forq_trio import NewMessage

from .face import NOBODY
from .words import SECOND

VALUE = {"order": 7, "lines": [{"sku": "é", "price": 1.5}, None, True], "big": 2**70}


async def test_a_value_comes_back_as_it_was_sent(face) -> None:
    await face.methods.produce_json("q", VALUE, priority=200)
    delivery = await face.take()
    assert delivery.json() == VALUE
    assert delivery.priority == 200
    assert delivery.content.startswith('{"order":7,"lines":[{"sku":"é",')


@pytest.mark.parametrize("value", [None, "text", 5, [], {}, False])
async def test_every_json_value_is_one(face, value) -> None:
    await face.methods.produce_json("q", value)
    assert (await face.take()).json() == value


async def test_batches_and_stages_take_values_too(face) -> None:
    messages = [NewMessage.of_json({"n": 1}), NewMessage.of_json({"n": 2}, delay_ms=SECOND)]
    await face.methods.produce_many("q", messages)
    assert [each.json() for each in await face.receive(most=5)] == [{"n": 1}]
    await face.methods.stage("other", "s", 0, messages[:1])


@pytest.mark.parametrize("value", [b"x", {1, 2}, object()])
async def test_what_json_has_no_form_for_is_a_type_error(face, value) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        await face.methods.produce_json("q", {"value": value})


async def test_json_has_no_nan(face) -> None:
    with pytest.raises(ValueError, match=r"^a\.b is nan, which JSON has no number for$"):
        await face.methods.produce_json("q", {"a": {"b": float("nan")}})


async def test_a_content_that_is_no_json_says_so(face) -> None:
    await face.send("plain")
    delivery = await face.take()
    with pytest.raises(ValueError, match="Expecting value"):
        delivery.json()


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"x", r"not bytes: \.decode\(\) .* base64\.b64encode\(\.\.\.\)\.decode\(\)"),
        (bytearray(b"x"), r"not bytearray: \.decode\(\)"),
        ({"n": 1}, r"not dict: produce_json, or NewMessage\.of_json"),
        (5, r"not int: produce_json"),
        (None, r"not NoneType: produce_json"),
    ],
)
async def test_other_content_is_refused_with_advice(face, content, advice) -> None:
    methods = face.methods
    for send in (
        lambda: methods.produce("q", content),
        lambda: methods.produce_many("q", [NewMessage("good"), NewMessage(content)]),
        lambda: methods.stage("q", "s", 0, [NewMessage(content)]),
    ):
        with pytest.raises(TypeError, match=advice):
            await send()
    assert await face.counts() == NOBODY


@pytest.mark.parametrize(
    "options",
    [
        {"deduplication_id": b"x"},
        {"group": b"x"},
        {"dead_letter_queue": b"x"},
        {"attributes": {"key": b"x"}},
        {"attributes": {b"key": "x"}},
    ],
)
async def test_so_are_other_members_that_are_text(face, options) -> None:
    with pytest.raises(TypeError):
        await face.send(**options)
    assert await face.counts() == NOBODY


async def test_so_is_a_reason(face) -> None:
    await face.send()
    delivery = await face.take()
    with pytest.raises(TypeError, match="reason is text"):
        await face.methods.nack("q", delivery, reason=b"x")
    assert (await face.counts()).processing == 1


@pytest.mark.parametrize("edit", [{"content": b"x"}, {"attributes": {"key": b"x"}}])
async def test_so_is_an_edited_copy(face, edit) -> None:
    sent = await face.send(dead_letter_queue="q-dlq", max_attempts=1)
    await face.nack((await face.take()).receipt)
    with pytest.raises(TypeError, match="not bytes"):
        await face.methods.resubmit("q-dlq", sent.id, **edit)
    assert (await face.counts("q-dlq")).ready == 1


@pytest.mark.parametrize("method", ["redrive", "delete_dead_letters"])
async def test_one_id_in_the_place_of_a_list_says_so(face, method) -> None:
    with pytest.raises(TypeError, match=r"message_ids is a list of texts, not one text: \['x'\]"):
        await getattr(face.methods, method)("q-dlq", "x")


async def test_one_scope_in_the_place_of_a_list_says_so(face) -> None:
    with pytest.raises(TypeError, match=r"scopes is a list of texts, not one text: \['produce'\]"):
        await face.methods.create_token("t", "produce")
