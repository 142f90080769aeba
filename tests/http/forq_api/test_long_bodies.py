"""A long body is decoded in slices, and what no message can have is refused before it is decoded."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from forq_trio.http.forq_api import publishing
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import read_message, read_messages, split_messages
from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from support.forq_api import Api, json_of

MANY = b",".join(b'"key %d":"v"' % number for number in range(60_000))
MANY_ATTRIBUTES = b'{"content":"x","attributes":{' + MANY + b"}}"
MANY_MEMBERS = b'{"content":"x",' + MANY + b"}"


def memory_of(action: Callable[[], Any]) -> int:
    """The most memory that was allocated at once."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_more_attributes_than_any_message_has_are_not_decoded():
    def read() -> None:
        with pytest.raises(Refused, match="attributes"):
            read_message(MANY_ATTRIBUTES)

    assert memory_of(read) < 100_000


def test_members_that_nobody_knows_are_not_decoded():
    assert memory_of(lambda: read_message(MANY_MEMBERS)) < 200_000
    assert read_message(MANY_MEMBERS) == NewMessage("x")


async def test_ten_attributes_of_the_longest_are_allowed_however_they_are_written(api: Api):
    escaped = "\\ud83d\\ude00"
    key, value = (limits.ATTRIBUTE_KEY_LENGTH_MAX - 2) * escaped, limits.ATTRIBUTE_VALUE_LENGTH_MAX * escaped
    attributes = ",".join(f'"{key}{number:02}":"{value}"' for number in range(limits.ATTRIBUTES_MAX))
    body = f'{{"content":"x","attributes":{{{attributes}}}}}'.encode()
    assert len(body) > limits.READ_SLICE_BYTES
    assert (await api.call("POST", "q/messages", body)).status == 204
    response = await api.call("POST", "q/messages/batch", b'{"messages":[' + body + b"]}")
    assert json_of(response)["results"][0]["sequence"] == 2
    assert (await api.call("POST", "q/stages/s/pages/0", body)).status == 200


@pytest.mark.parametrize("entry", [b"0", b'{"content":""}'])
async def test_a_batch_with_too_many_entries_is_not_read_to_its_end(api: Api, entry: bytes):
    body = b'{"messages":[' + b",".join([entry] * 200_000) + b"]}"

    def split() -> None:
        with pytest.raises(Refused, match="at most 1000 entries"):
            split_messages(body)

    assert memory_of(split) < 1_000_000
    assert await api.code("POST", "q/messages/batch", body) == (400, "bad_request.body.too_many_messages")


async def test_a_short_batch_with_too_many_wrong_entries_is_not_explained_one_by_one(api: Api):
    body = b'{"messages":[' + b",".join([b"0"] * 20_000) + b"]}"
    assert await api.code("POST", "q/messages/batch", body) == (400, "bad_request.body.too_many_messages")


async def test_other_tasks_run_while_a_long_batch_is_read():
    other_turns = 0
    entry = b'{"content":"' + b"x" * 4_000 + b'"}'

    async def other() -> None:
        nonlocal other_turns
        while True:
            await trio.lowlevel.checkpoint()
            other_turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await read_messages.entries(b'{"messages":[' + b",".join([entry] * 500) + b"]}")
        nursery.cancel_scope.cancel()
    assert other_turns >= 500 * 4_000 // limits.READ_SLICE_BYTES


@pytest.mark.parametrize("body", [b"\n" * limits.STAGE_PAGE_BYTES_MAX, b"ab\n" * 1_000_000])
async def test_lines_are_counted_before_they_are_split(api: Api, body: bytes):
    tracemalloc.start()
    try:
        code = await api.code("POST", "q/stages/s/pages/0", body)
        memory = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert code == (400, "bad_request.body.too_many_messages")
    assert memory < limits.STAGE_PAGE_BYTES_MAX + 1_000_000


async def test_a_line_is_no_longer_than_a_message_can_be(api: Api):
    line = b'{"content":"x","attributes":' + b" " * limits.SEND_BODY_BYTES_MAX + b"{}}"
    response = await api.call("POST", "q/stages/s/pages/0", b'{"content":"x"}\n' + line)
    assert (response.status, json_of(response)["field"]) == (413, "$.lines[1]")
    code = await api.code("POST", "q/stages/s/pages/0", MANY_ATTRIBUTES)
    assert code == (400, "bad_request.body.attributes.invalid")


async def test_only_a_few_long_pages_are_read_at_once(api: Api, monkeypatch):
    reading = most = 0
    read_page = publishing._read_page

    async def counted(body: bytes) -> list[NewMessage]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        try:
            return await read_page(body)
        finally:
            reading -= 1

    monkeypatch.setattr(publishing, "_read_page", counted)
    page = (b'{"content":"' + b"x" * 1_000 + b'"}\n') * 200
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(api.call, "POST", f"q/stages/s/pages/{number}", page)
    assert 1 <= most <= limits.STAGE_PAGES_READ_MAX
    assert api.broker.known.staging().stages == 1


async def test_one_caller_reads_one_long_page_at_a_time(api: Api):
    endpoints = publishing.PublishingEndpoints(api.broker)
    order: list[str] = []

    async def read(caller: str) -> None:
        async with endpoints._one_at_a_time(caller):
            order.append(caller)
            await trio.lowlevel.checkpoint()
            await done.wait()

    done = trio.Event()
    async with trio.open_nursery() as nursery:
        for caller in ("many", "many", "many", "one"):
            nursery.start_soon(read, caller)
            await trio.testing.wait_all_tasks_blocked()
        assert order == ["many", "one"]
        done.set()
    assert order == ["many", "one", "many", "many"]
    assert endpoints._reading_of == {}
