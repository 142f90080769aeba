"""How connections of HTTP/2 end: by the client, who may leave just when its answer comes, and by the server."""

import pytest
import trio
import trio.testing

from forq_trio.http.message import NO_CONTENT, Response
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.http2 import frames
from forq_trio.model import limits
from support.transport import running

from .test_disconnect import LongPoll, reset
from .test_http2_rules import PING, SETTINGS, frames_behind, number, request

WAIT = request((b":path", b"/wait"))


@pytest.mark.parametrize("how", ["close", "half close", "reset"])
async def test_a_claim_for_a_client_that_left_meanwhile_is_given_back(how: str):
    """The kernel would still take the bytes of a short answer, and the message would be gone for a lease."""
    unsent, asked, left = trio.Event(), trio.Event(), trio.Event()

    async def handler(request_):
        asked.set()
        await left.wait()
        return Response(200, b"a message", on_unsent=unsent.set)

    async with running(handler) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + request())
        await asked.wait()
        if how == "reset":
            reset(client)
        elif how == "close":
            await client.close()
        else:
            await client.stream.send_eof()
        left.set()
        await unsent.wait()


async def test_a_claim_whose_stream_is_reset_behind_a_full_window_is_given_back_once():
    unsent = []

    async def handler(request_):
        return Response(200, b"a message", on_unsent=lambda: unsent.append(1))

    async with running(handler) as transport:
        client = await transport.connect()
        sent = frames.PREFACE + frames.settings_frame({4: 1}) + request()
        await frames_behind(client, sent, [frames.DATA])
        late = frames.reset_frame(1, frames.CANCEL) + frames.window_update_frame(1, 100) + PING
        await frames_behind(client, late, [frames.PING])
        assert unsent == [1]


async def test_a_request_that_is_reset_at_once_is_not_handled():
    asked = []

    async def handler(request_):
        asked.append(request_.path)
        return NO_CONTENT

    async with running(handler) as transport:
        client = await transport.connect()
        sent = frames.PREFACE + SETTINGS + request() + frames.reset_frame(1, frames.CANCEL) + PING
        await frames_behind(client, sent, [frames.PING])
        assert asked == []


async def test_a_stopping_server_says_which_requests_it_has_not_served():
    async with running(poll := LongPoll()) as transport, trio.open_nursery() as nursery:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + WAIT)
        await poll.started.wait()
        nursery.start_soon(transport.server.drain, 10)
        last = await frames_behind(client, b"", [frames.GOAWAY])
        assert last[frames.GOAWAY][1] == number(1) + number(frames.NO_ERROR)
        last = await frames_behind(client, request(stream_id=3), [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (3, number(frames.REFUSED_STREAM))
        poll.release.set()
        last = await frames_behind(client, b"", [frames.HEADERS])
        assert last[frames.HEADERS][0] == 1
        assert await client.ends() == b""


@pytest.mark.parametrize("before", [b"", frames.PREFACE[:5], frames.PREFACE + SETTINGS])
async def test_a_stopping_server_waits_for_the_first_request_of_a_connection(before: bytes, monkeypatch):
    monkeypatch.setattr(limits, "SHUTDOWN_IDLE_SECONDS", 60.0)
    config = TransportConfig(linger_seconds=0.1)
    async with running(config=config) as transport, trio.open_nursery() as nursery:
        client = await transport.connect()
        await client.send(before)
        await client.arrived()
        nursery.start_soon(transport.server.drain, 60)
        await trio.testing.wait_all_tasks_blocked()
        rest = (frames.PREFACE + SETTINGS + request())[len(before) :]
        last = await frames_behind(client, rest, [frames.GOAWAY])
        assert last[frames.HEADERS][0] == 1
        assert last[frames.GOAWAY][1] == number(1) + number(frames.NO_ERROR)
        assert await client.ends() == b""


async def test_a_client_that_sends_goaway_gets_its_answers_first():
    async with running(poll := LongPoll()) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + WAIT + frames.goaway_frame(0, frames.NO_ERROR))
        await poll.started.wait()
        await trio.testing.wait_all_tasks_blocked()
        poll.release.set()
        last = await frames_behind(client, b"", [frames.HEADERS])
        assert last[frames.HEADERS][0] == 1
        assert await client.ends() == b""


async def test_a_connection_that_fails_cancels_what_waits():
    async with running(poll := LongPoll()) as transport:
        client = await transport.connect()
        await client.send(frames.PREFACE + SETTINGS + WAIT)
        await poll.started.wait()
        last = await frames_behind(client, frames.frame(frames.DATA, 0, 0, b"x"), [frames.GOAWAY])
        assert last[frames.GOAWAY][1] == number(1) + number(frames.PROTOCOL_ERROR)
        await poll.cancelled.wait()


async def test_an_answer_that_cannot_be_sent_resets_its_stream_and_is_taken_back():
    unsent = []

    async def handler(request_):
        return Response(204, headers=((b"broken", b"a\r\nb"),), on_unsent=lambda: unsent.append(1))

    async with running(handler, errors_expected=True) as transport:
        client = await transport.connect()
        last = await frames_behind(client, frames.PREFACE + SETTINGS + request(), [frames.RST_STREAM])
        assert last[frames.RST_STREAM] == (1, number(frames.INTERNAL_ERROR))
        assert (unsent, [type(error) for error in transport.errors]) == ([1], [ValueError])


async def test_headers_of_any_length_are_sent():
    async def handler(request_):
        return Response(204, headers=((b"long", b"x" * 40_000),))

    async with running(handler) as transport:
        client = await transport.connect()
        last = await frames_behind(client, frames.PREFACE + SETTINGS + request(), [frames.CONTINUATION])
        assert len(last[frames.HEADERS][1]) == frames.FRAME_BYTES_MAX
        assert last[frames.CONTINUATION][0] == 1


async def test_a_client_that_has_left_with_its_answer_half_sent_is_not_waited_for():
    """It has closed its side and reads nothing."""

    async def handler(request_):
        return Response(200, bytes(20_000_000))

    async with running(handler) as transport:
        client = await transport.connect()
        window = frames.settings_frame({4: frames.WINDOW_BYTES_MAX}) + frames.window_update_frame(0, 2**30)
        await client.send(frames.PREFACE + window + request())
        await client.arrived()
        await client.stream.send_eof()
        await transport.until_nobody_is_connected()
