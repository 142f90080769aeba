"""Acks of one pass of the event loop share a request; each caller has results, errors and an end of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from forq_trio import (
    AsyncForqClient,
    ClientClosed,
    Forbidden,
    ForqProtocolError,
    ForqUnreachable,
    ReceiptNotCurrent,
)
from forq_trio.client.failures import NoAnswer
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.model.limits import RECEIPTS_BATCH_MAX
from support.fake_transport import answer_of
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET

Ending = Callable[[BaseException], None]


class Server:
    """A transport that accepts receipts beginning with "a" and notes the requests. held: answers wait for it."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.held: anyio.Event | None = None
        self.answer: Callable[[list[str]], HttpAnswer] = self.results

    async def exchange(self, request: ClientRequest) -> HttpAnswer:
        receipts = msgspec.json.decode(request.content)["receipts"]
        self.asked.append(receipts)
        if self.held is not None:
            await self.held.wait()
        return self.answer(receipts)

    def results(self, receipts: list[str]) -> HttpAnswer:
        refused = {"ok": False, "code": ReceiptNotCurrent.code}
        return answer_of(
            json={
                "results": [
                    {"receipt": each} | ({"ok": True} if each.startswith("a") else refused)
                    for each in receipts
                ]
            }
        )

    def close(self) -> None:
        pass


@pytest.fixture(params=["trio", "asyncio"])
def run(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Runs a test on a loop, with a server and its client."""

    def run(test: Callable[[Server, AsyncForqClient], Awaitable[None]]) -> None:
        async def main() -> None:
            server = Server()
            async with AsyncForqClient("http://forq", transport=server, retry_seconds=0) as client:
                with anyio.fail_after(WAIT_SECONDS_MAX):
                    await test(server, client)

        anyio.run(main, backend=request.param)

    return run


async def outcomes(client: AsyncForqClient, *acks: tuple[str, Any]) -> list[Any]:
    """What acks return or raise that are made at once."""
    found: list[Any] = [None] * len(acks)

    async def ack(number: int, queue: str, receipts: Any) -> None:
        try:
            found[number] = await client.ack(queue, receipts)
        except Exception as problem:
            found[number] = problem

    async with anyio.create_task_group() as tasks:
        for number, (queue, receipts) in enumerate(acks):
            tasks.start_soon(ack, number, queue, receipts)
    return found


def test_each_has_its_own_results(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        one, many, refused, mixed = await outcomes(
            client, ("q", "a1"), ("q", ["a2", "a3"]), ("q", "b1"), ("q", ["b2", "a4"])
        )
        assert len(server.asked) == 1
        assert sorted(server.asked[0]) == ["a1", "a2", "a3", "a4", "b1", "b2"]
        assert (one.receipt, one.ok) == ("a1", True)
        assert [(each.receipt, each.ok) for each in many] == [("a2", True), ("a3", True)]
        assert isinstance(refused, ReceiptNotCurrent)
        assert [(each.receipt, each.ok) for each in mixed] == [("b2", False), ("a4", True)]

    run(test)


def test_queues_share_nothing(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        await outcomes(client, ("q", "a1"), ("r", "a2"))
        assert sorted(server.asked) == [["a1"], ["a2"]]

    run(test)


def test_a_later_pass_is_another_request(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        server.held = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for receipt in ("a1", "a2"):
                tasks.start_soon(client.ack, "q", receipt)
                while [receipt] not in server.asked:
                    await checkpoint()
            server.held.set()
        assert server.asked == [["a1"], ["a2"]]

    run(test)


def test_a_lone_ack_waits_for_one_pass_only(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        passes = 0

        async def count() -> None:
            nonlocal passes
            while not server.asked:
                passes += 1
                await checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(count)
            await checkpoint()
            passes = 0
            await client.ack("q", "a1")
        assert passes <= 2

    run(test)


@pytest.mark.parametrize("others", ["", "no", "x" * 65, "käse"])
def test_a_receipt_that_the_server_might_refuse_is_sent_alone(run, others: str):
    async def test(server: Server, client: AsyncForqClient) -> None:
        strange = [others] * (others != "")
        await outcomes(client, ("q", "a1"), ("q", strange), ("q", "a2"))
        shared = ["a1", "a2", *strange] if others == "no" else ["a1", "a2"]
        assert sorted(shared) in [sorted(asked) for asked in server.asked]

    run(test)


def test_a_request_has_no_more_receipts_than_the_server_takes(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        half = RECEIPTS_BATCH_MAX // 2 + 1
        first, second = [[f"a{sign}{number}" for number in range(half)] for sign in "xy"]
        found = await outcomes(client, ("q", first), ("q", second))
        assert sorted(map(len, server.asked)) == [half, half]
        assert [[each.receipt for each in results] for results in found] == [first, second]

    run(test)


@pytest.mark.parametrize("cancelled", [0, 1, 2])
def test_a_cancelled_ack_does_not_affect_others(run, cancelled: int):
    async def test(server: Server, client: AsyncForqClient) -> None:
        server.held = anyio.Event()
        scopes = [anyio.CancelScope() for _ in range(3)]
        done = []

        async def ack(number: int) -> None:
            with scopes[number]:
                await client.ack("q", f"a{number}")
                done.append(number)

        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(ack, number)
            while not server.asked:
                await checkpoint()
            scopes[cancelled].cancel()
            await checkpoint()
            server.held.set()
        assert sorted(done) == [number for number in range(3) if number != cancelled]
        assert len(server.asked) == 1

    run(test)


def test_the_first_is_cancelled_before_the_request(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        done = []

        async def first() -> None:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await client.ack("q", "a1")
                done.append("a1")

        async def second() -> None:
            await client.ack("q", "a2")
            done.append("a2")

        for _ in range(20):  # trio's order of tasks is random
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first)
                tasks.start_soon(second)
        assert done == ["a2"] * 20

    run(test)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (answer_of(403, json={"code": "forbidden"}), Forbidden),
        (answer_of(json={"results": []}), ForqProtocolError),
        (answer_of(content=b"<html>"), ForqProtocolError),
        (NoAnswer("gone"), ForqUnreachable),
    ],
)
def test_each_has_an_error_of_its_own(run, answer: HttpAnswer | Exception, kind: type[Exception]):
    async def test(server: Server, client: AsyncForqClient) -> None:
        def fail(receipts: list[str]) -> HttpAnswer:
            if isinstance(answer, Exception):
                raise answer
            return answer

        server.answer = fail
        found = await outcomes(client, *(("q", [f"a{number}"]) for number in range(3)))
        assert [type(each) for each in found] == [kind] * 3
        assert len({id(each) for each in found}) == 3
        assert len({(str(each), each.code, each.field) for each in found}) == 1
        assert len(server.asked) == 1

    run(test)


def test_closing_the_client_ends_all(run):
    async def test(server: Server, client: AsyncForqClient) -> None:
        await client.aclose()
        found = await outcomes(client, ("q", "a1"), ("q", "a2"))
        assert [type(each) for each in found] == [ClientClosed] * 2

    run(test)


def test_the_end_of_the_loop_is_an_end_of_the_request():
    server = Server()

    async def main() -> None:
        server.held = anyio.Event()
        client = AsyncForqClient("http://forq", transport=server)
        acks = [asyncio.ensure_future(client.ack("q", f"a{number}")) for number in range(2)]
        while not server.asked:
            await checkpoint()
        for ack in acks:
            ack.cancel()

    asyncio.run(main())
    assert len(server.asked) == 1


def test_against_the_server(url: str, queue: str):
    async def main() -> None:
        async with AsyncForqClient(url, SECRET) as client:
            for number in range(20):
                await client.produce(queue, str(number))
            deliveries = await client.receive(queue, max_messages=20)
            found = await outcomes(client, *((queue, each) for each in deliveries))
            assert [each.receipt for each in found] == [each.receipt for each in deliveries]
            assert all(each.ok for each in found)
            (again,) = await outcomes(client, (queue, deliveries[0]))
            assert isinstance(again, ReceiptNotCurrent)

    for backend in ("trio", "asyncio"):
        anyio.run(main, backend=backend)
