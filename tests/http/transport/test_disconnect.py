"""A client that goes away: a long poll ends at once, a response that was not delivered is reported once (F3)."""

import select
import socket
import struct

import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Response
from forq_trio.http.transport import hang_ups
from forq_trio.http.transport.config import TransportConfig
from forq_trio.model import limits
from support.transport import echo, get, running

SOON = 0.03
"""Seconds after which the server has seen what a client did."""


class LongPoll:
    """A handler for /wait that waits until released, and says how that ended."""

    def __init__(self, response=NO_CONTENT):
        self.started, self.cancelled, self.release = trio.Event(), trio.Event(), trio.Event()
        self.response = response

    async def __call__(self, request):
        if request.path != "/wait":
            return await echo(request)
        async with request.cancelled_on_disconnect():
            self.started.set()
            try:
                await self.release.wait()
            except trio.Cancelled:
                self.cancelled.set()
                raise
        return self.response


def reset(client):
    """Close with a TCP reset instead of an orderly end."""
    client.stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.stream.socket.close()


@pytest.mark.parametrize("how", ["close", "reset", "half close"])
async def test_disconnect_cancels_a_waiting_handler(how):
    poll = LongPoll()
    async with running(poll) as transport:
        client = await transport.connect()
        await client.send(get("/wait"))
        await poll.started.wait()
        if how == "reset":
            reset(client)
        elif how == "close":
            await client.close()
        else:
            await client.stream.send_eof()
        await poll.cancelled.wait()
        while transport.server.connections:
            await trio.lowlevel.checkpoint()


async def test_a_client_that_is_gone_before_the_wait_begins():
    poll = LongPoll()
    async with running(poll) as transport:
        client = await transport.connect()
        await client.send(get("/first") + get("/wait"))
        await client.close()
        await poll.cancelled.wait()


async def test_what_arrives_during_a_wait_is_answered_after_it():
    poll = LongPoll()
    async with running(poll, TransportConfig(receive_chunk_bytes=1024)) as transport:
        client = await transport.connect()
        await client.send(get("/wait"))
        await poll.started.wait()
        early = [f"/{number}" for number in range(100)]
        await client.send(b"".join(map(get, early)))  # Several times the room there is for early bytes.
        await trio.testing.wait_all_tasks_blocked(cushion=SOON)
        poll.release.set()
        assert (await client.answer()).status == 204
        for path in early:
            assert (await client.answer()).body == f"GET {path}?\n".encode()


async def test_early_bytes_do_not_hide_the_disconnect():
    poll = LongPoll()
    async with running(poll) as transport:
        client = await transport.connect()
        await client.send(get("/wait") + get("/next"))
        await poll.started.wait()
        await client.send(get("/other"))
        await client.close()
        await poll.cancelled.wait()


async def test_waits_follow_each_other_on_one_connection():
    async with running(poll := LongPoll()) as transport:
        client = await transport.connect()
        for _ in range(3):
            poll.started, poll.release = trio.Event(), trio.Event()
            await client.send(get("/wait"))
            await poll.started.wait()
            await trio.testing.wait_all_tasks_blocked(cushion=SOON)  # The client is watched.
            poll.release.set()
            assert (await client.answer()).status == 204


async def test_outside_of_a_wait_a_disconnect_is_noticed_when_writing():
    """The handler finishes; its response is reported exactly once when the connection turns out to be reset."""
    release, unsent = trio.Event(), []
    done = trio.Event()

    async def handler(request):
        await release.wait()

        def on_unsent():
            unsent.append(1)
            done.set()

        return Response(200, b"x" * 10_000_000, on_unsent=on_unsent)

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get())
        await trio.testing.wait_all_tasks_blocked()
        reset(client)
        release.set()
        await done.wait()
        assert unsent == [1]


async def test_a_response_that_is_ready_when_the_client_has_just_left_is_reported():
    """The kernel would accept it: a socket whose peer has closed can still be written to."""
    started, release, unsent = trio.Event(), trio.Event(), trio.Event()

    async def handler(request):
        async with request.cancelled_on_disconnect():
            with trio.CancelScope(shield=True):
                started.set()
                await release.wait()
        return Response(200, b"a message", on_unsent=unsent.set)

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get())
        await started.wait()
        await client.close()
        await trio.testing.wait_all_tasks_blocked(cushion=SOON)
        release.set()
        await unsent.wait()


async def test_a_delivered_response_is_not_reported():
    unsent = []
    response = Response(200, b"x" * 2_000_000, on_unsent=lambda: unsent.append(1))
    poll = LongPoll(response)
    poll.release.set()
    async with running(poll) as transport:
        client = await transport.connect()
        await client.send(get("/wait"))
        assert len((await client.answer()).body) == 2_000_000
    assert unsent == []


@pytest.mark.parametrize("how", ["close", "half close"])
async def test_a_claim_for_a_client_that_left_meanwhile_is_not_sent_into_the_void(how):
    """F3: the kernel would still take the bytes of a short answer, and the message would be gone for a lease."""
    unsent, asked, left = trio.Event(), trio.Event(), trio.Event()

    async def handler(request):
        asked.set()
        await left.wait()
        return Response(200, b"a message", on_unsent=unsent.set)

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get("/"))
        await asked.wait()
        await (client.close() if how == "close" else client.stream.send_eof())
        left.set()
        await unsent.wait()


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="only Linux tells")
async def test_a_disconnect_behind_more_bytes_than_are_read_ahead_is_noticed():
    poll = LongPoll()
    async with running(poll, TransportConfig(receive_chunk_bytes=1024)) as transport:
        client = await transport.connect()
        await client.send(get("/wait") + 100 * get("/next"))
        await poll.started.wait()
        await trio.testing.wait_all_tasks_blocked(cushion=SOON)
        assert not poll.cancelled.is_set()
        await client.close()
        await poll.cancelled.wait()


async def test_clients_that_hang_up_at_once_are_let_go_a_few_in_each_pass(monkeypatch):
    """Each end takes a tenth of a millisecond, so thousands in one pass held up everybody for a second."""
    monkeypatch.setattr(limits, "WAITS_ENDED_MAX", 3)
    waiting = left = 0

    async def handler(request):
        nonlocal waiting, left
        async with request.cancelled_on_disconnect():
            waiting += 1
            try:
                await trio.sleep_forever()
            finally:
                left += 1

    async with running(handler) as transport:
        clients = [await transport.connect() for _ in range(20)]
        for client in clients:
            await client.send(get("/wait"))
        while waiting < len(clients):
            await trio.lowlevel.checkpoint()
        await trio.testing.wait_all_tasks_blocked(cushion=SOON)
        for client in clients:
            client.stream.socket.close()
        passes = []
        while left < len(clients):
            before = left
            await trio.lowlevel.checkpoint()
            passes.append(left - before)
    assert max(passes) <= 2 * 3  # between two passes of this task others may have had two


async def test_a_disconnect_is_noticed_without_epoll(monkeypatch):
    monkeypatch.delattr("select.epoll", raising=False)
    monkeypatch.setattr(hang_ups, "LOOK_SECONDS", 0.1)
    poll = LongPoll()
    async with running(poll) as transport:
        client = await transport.connect()
        await client.send(get("/wait") + get("/next"))
        await poll.started.wait()
        await trio.testing.wait_all_tasks_blocked(cushion=SOON)
        await client.close()
        await poll.cancelled.wait()


@pytest.mark.skipif(not hasattr(select, "POLLRDHUP"), reason="only Linux tells")
async def test_bytes_that_were_not_read_do_not_hide_that_the_client_left():
    unsent, asked, left = trio.Event(), trio.Event(), trio.Event()

    async def handler(request):
        if request.path == "/next":
            return NO_CONTENT
        asked.set()
        await left.wait()
        return Response(200, b"a message", on_unsent=unsent.set)

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(get("/"))
        await asked.wait()
        await client.send(get("/next"))
        await client.close()
        left.set()
        await unsent.wait()
