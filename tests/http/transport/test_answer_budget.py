"""All answers of a server that wait for their clients have a bound: nobody fills its memory by not reading."""

import tracemalloc

import trio
import trio.testing

from forq_trio.http.message import Request, Response
from forq_trio.http.transport.answer_budget import AnswerBudget
from forq_trio.http.transport.config import TransportConfig
from forq_trio.model import limits
from forq_trio.model.budget import Share
from forq_trio.model.holders import OWNER, Holder, HolderKind
from support.transport import ERROR_BODIES, get, post, running

from .test_http2 import http2

SHORT = limits.SHORT_ANSWER_BYTES_MAX
LONG = 12_000_000  # more than the kernel takes of a client that does not read
CONFIG = TransportConfig(answers_bytes_max=2 * LONG)


def admitted(budget: AnswerBudget, body_bytes: int, method="GET", on_unsent=None) -> int:
    response = Response(200, b"x" * body_bytes, on_unsent=on_unsent)
    return budget.admit(OWNER, method, "/", {}, response, lambda status, *_: Response(status)).status


def test_long_answers_leave_a_part_to_short_ones():
    budget = AnswerBudget(8 * SHORT)
    assert admitted(budget, 5 * SHORT) == 200
    assert admitted(budget, SHORT + 1) == 503
    assert [admitted(budget, SHORT) for _ in range(4)] == [200, 200, 200, 503]
    budget.release(OWNER, 5 * SHORT)
    assert admitted(budget, SHORT + 1) == 200


def test_an_answer_of_any_length_is_given_alone():
    budget = AnswerBudget(10)
    assert [admitted(budget, SHORT + 1), admitted(budget, 1)] == [200, 503]
    budget.release(OWNER, SHORT + 1)
    assert budget.used == 0


def test_only_what_changed_nothing_may_be_asked_for_again():
    unsent = []
    budget = AnswerBudget(10)
    budget.used = 10
    assert admitted(budget, 1, "POST") == 500
    assert admitted(budget, 1, "HEAD") == 503
    assert admitted(budget, 1, "POST", lambda: unsent.append(1)) == 503
    assert unsent == [1]


def admit(request: Request) -> None:
    """The key is the name of a token."""
    request.holder = Holder(HolderKind.TOKEN, request.headers[b"x-api-key"].decode())


class Answers:
    """A handler that counts what it was asked for."""

    def __init__(self):
        self.asked = 0

    async def __call__(self, request):
        self.asked += 1
        return Response(200, bytes(LONG if request.path == "/long" else 10))

    async def stuck(self, transport, clients=1, *headers):
        """Clients that have asked for a long answer and do not read it."""
        asking = [await transport.connect() for _ in range(clients)]
        for client in asking:
            await client.send(get("/long", *headers))
        while self.asked < clients:
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked()
        return asking


async def test_an_answer_beyond_the_budget_is_not_given_and_its_connection_goes_on():
    async with running(answers := Answers(), CONFIG) as transport:
        (slow,) = await answers.stuck(transport)
        other = await transport.connect()
        await other.send(get("/long") + post(b"", path="/long") + get("/short"))
        refused = await other.answer()
        assert (refused.status, refused.body) == (503, ERROR_BODIES[503])
        assert [(await other.answer()).status for _ in range(2)] == [500, 200]
        assert len((await slow.answer()).body) == LONG
        await other.send(get("/long"))
        assert len((await other.answer()).body) == LONG


async def test_a_token_whose_answers_nobody_reads_leaves_space_for_those_of_others():
    config = TransportConfig(answers_bytes_max=4 * LONG)
    async with running(answers := Answers(), config, admit=admit) as transport:
        await answers.stuck(transport, 3, "X-API-Key: greedy")
        assert transport.server.budgets["answers"].refused == {Share.TOKEN: 1}
        other = await transport.connect()
        await other.send(get("/long", "X-API-Key: other"))
        assert len((await other.answer()).body) == LONG


async def test_http2_shares_the_budget():
    async with running(answers := Answers(), CONFIG) as transport:
        (slow,) = await answers.stuck(transport)
        client = await http2(transport)
        refused = await client.answer(await client.request(path="/long"))
        assert (refused.status, refused.body) == (503, ERROR_BODIES[503])
        assert (await client.answer(await client.request(path="/short"))).status == 200
        await slow.close()
        while transport.server.connections > 1:
            await trio.lowlevel.checkpoint()
        stream_id = await client.request(path="/long")
        while stream_id not in client.answers:  # to read it all takes half a second
            await client.receive()
        assert client.answers[stream_id].status == 200


async def test_a_client_that_opens_no_window_is_cut():
    config = TransportConfig(answers_bytes_max=LONG, send_seconds=0.1)
    async with running(Answers(), config) as transport:
        slow = await http2(transport)
        await slow.request(path="/long")
        while await slow.stream.receive_some():
            continue
        while transport.server.connections:
            await trio.lowlevel.checkpoint()
        client = await transport.connect()
        await client.send(get("/short"))
        assert (await client.answer()).status == 200


async def test_a_waiting_answer_is_held_once():
    async with running(answers := Answers()) as transport:
        tracemalloc.start()
        try:
            await answers.stuck(transport, clients=4)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert 4 * LONG <= held < 6 * LONG
