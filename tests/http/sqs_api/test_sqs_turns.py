"""Long work for many requests at once: other requests have their turn between any two slices of it."""

import pytest
import trio

from forq_trio.http.sqs_api.access import UnsignedGate
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.details import DetailChanges
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.queues import SqsQueues
from forq_trio.http.sqs_api.sending import SqsSending
from forq_trio.http.sqs_api.service import SqsService
from forq_trio.http.sqs_api.shapes import (
    ListDeadLetterSourceQueuesRequest,
    ListQueuesRequest,
    SendMessageRequest,
)
from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.system import System

from .in_process import ACCOUNT, Turns, caller_with_all_rights, memory_system, request_of

SLICE = 20


async def make_queues(system: System, count: int) -> None:
    await system.broker.produce_across([(f"q{number:03}", NewMessage("x")) for number in range(count)])


@pytest.mark.parametrize("operation", ["queues", "sources"])
async def test_of_many_pages_at_once_a_turn_has_one_slice(monkeypatch, operation: str) -> None:
    monkeypatch.setattr(limits, "SQS_QUEUES_LOOKED_AT", SLICE)
    async with memory_system() as system, trio.open_nursery() as watch:
        await make_queues(system, 200)
        queues = SqsQueues(system.broker, DetailChanges(system.broker))
        asked = ListQueuesRequest() if operation == "queues" else ListDeadLetterSourceQueuesRequest("q000")
        turns = Turns()
        watch.start_soon(turns.take)
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(getattr(queues, operation), caller_with_all_rights(), asked)
        watch.cancel_scope.cancel()
    assert turns.count > 0.9 * 50 * 200 / SLICE


async def test_a_page_looks_only_at_queues_that_begin_as_it_wants(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_QUEUES_LOOKED_AT", SLICE)
    async with memory_system() as system:
        await make_queues(system, 500)
        async with trio.open_nursery() as watch:
            turns = Turns()
            watch.start_soon(turns.take)
            queues = SqsQueues(system.broker, DetailChanges(system.broker))
            found = await queues.queues(caller_with_all_rights(), ListQueuesRequest("q49"))
            watch.cancel_scope.cancel()
    assert [url.rpartition("/")[2] for url in found.queue_urls] == [f"q49{digit}" for digit in range(10)]
    assert turns.count < 10


@pytest.mark.parametrize("region", [ACCOUNT.region, "eu-west-1"])
async def test_a_page_has_all_queues_that_begin_as_it_wants(region: str) -> None:
    long = "a" * 70
    names = ["a", "a-1", "a.fifo", "aa", "b", long, f"{long}b", f"{long}.fifo", f"{long}bc.fifo", "c" * 80]
    async with memory_system() as system:
        changes = DetailChanges(system.broker)
        for each in (ACCOUNT.region, "eu-west-1", "eu-west-2"):
            for name in names:
                await changes.store(SqsQueue(name, each, ACCOUNT))
        queues = SqsQueues(system.broker, changes)
        caller = SqsCaller(request_of(), region, ACCOUNT)
        for prefix in ("", "a", "a-", "a.", "aa", long, f"{long}b", f"{long}.", "c" * 79, "c" * 81, "é"):
            page, token = [], None
            while True:
                found = await queues.queues(caller, ListQueuesRequest(prefix, token, 3))
                page += [url.rpartition("/")[2] for url in found.queue_urls]
                if (token := found.next_token) is None:
                    break
            assert sorted(page) == sorted(name for name in names if name.startswith(prefix))


async def test_for_many_refused_details_at_once_those_of_all_queues_are_counted_once(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 1_000)
    counted = 0

    def count(content: str, attributes: dict[str, str]) -> int:
        nonlocal counted
        counted += 1
        return bytes_of(content, attributes)

    monkeypatch.setattr("forq_trio.http.sqs_api.details_budget.bytes_of", count)
    async with memory_system() as system:
        changes = DetailChanges(system.broker)
        queues = [SqsQueue(f"q{number:03}", ACCOUNT.region, ACCOUNT) for number in range(200)]
        for queue in queues:
            await changes.store(queue, tags={"a": "b"})
        counted = 0

        async def store() -> None:
            with pytest.raises(SqsError, match="too long together"):
                await changes.store(queues[0], attributes={"Policy": "x" * 5_000})

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(store)
    # Attributes and tags of each queue: once because a server starts with them, and once because some may be gone.
    assert counted <= 2 * 2 * 200 + 2 * 50


@pytest.mark.parametrize("target", ["", "SendMessage"])
async def test_of_many_long_requests_at_once_a_turn_reads_one(target: str) -> None:
    text = b"x" * (limits.READ_SLICE_BYTES + 1)
    form = b"Action=SendMessage&QueueUrl=q000&MessageBody=%b"
    body = b'{"QueueUrl":"q000","MessageBody":"%b"}' if target else form
    async with memory_system() as system, trio.open_nursery() as watch:
        await make_queues(system, 1)
        service, turns = SqsService(system.broker, UnsignedGate(ACCOUNT.region), ACCOUNT, None), Turns()
        watch.start_soon(turns.take)
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(service.respond, request_of(body % text, target))
        watch.cancel_scope.cancel()
        assert system.broker.known.counts_of("q000").ready == 51
    assert turns.count >= 50


async def test_a_message_that_is_too_long_is_not_searched(monkeypatch) -> None:
    searched = []

    class Noted:
        def search(self, text: str) -> None:
            searched.append(text)

    monkeypatch.setattr("forq_trio.http.sqs_api.checks.FORBIDDEN", Noted())
    async with memory_system() as system:
        await make_queues(system, 1)
        sending = SqsSending(system.broker, None)
        fits = SendMessageRequest(queue_url="q000", message_body="\n")
        await sending.send_message(caller_with_all_rights(), fits)
        assert searched == ["\n"]
        too_long = SendMessageRequest(queue_url="q000", message_body="\n" * limits.BODY_BYTES_MAX)
        with pytest.raises(SqsError, match="must be shorter"):
            await sending.send_message(caller_with_all_rights(), too_long)
        assert searched == ["\n"]
