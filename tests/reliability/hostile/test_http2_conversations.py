"""Random conversations over HTTP/2, most of them broken: no 5xx, no hang, no error of ours, nothing left counted.

What a client has got whole was not taken back; what it has not got was taken back once.
"""

import random

import pytest
import trio

from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.transport.config import TransportConfig
from support.effort import count, many_trials
from support.processes import WAIT_SECONDS_MAX

from .http2_frames import Conversation, read_answers
from .whole_app import exchange

LONG = 200_000
CONFIG = TransportConfig(linger_seconds=5.0)
NOT_SERVED = 501  # CONNECT, the only 5xx that a client can ask for


class Answering:
    """A handler; unsent: how often the answer to each request was taken back, by the number that it was given."""

    def __init__(self) -> None:
        self.unsent: list[int] = []

    async def __call__(self, request: Request) -> Response:
        if request.path == "/wait":
            async with request.cancelled_on_disconnect():
                await trio.sleep_forever()
        if request.path == "/none":
            return NO_CONTENT
        number = len(self.unsent)
        self.unsent.append(0)

        def take_back() -> None:
            self.unsent[number] += 1

        long = bytes(LONG) if request.path == "/long" else b""
        return Response(200, b"%d " % number + long + request.body, on_unsent=take_back)


async def converse(seed: int) -> None:
    conversation = Conversation(random.Random(seed))
    answering = Answering()
    with trio.fail_after(WAIT_SECONDS_MAX):
        seen = await exchange(answering, CONFIG, conversation.pieces())
    assert seen.errors == []
    if seen.received.startswith(b"HTTP/1.1"):
        return
    delivered = set()
    for answer in read_answers(seen.received).values():
        assert all(status < 500 or status == NOT_SERVED for status in answer.statuses)
        if answer.is_whole and answer.statuses[-1] == 200 and answer.body:
            delivered.add(int(answer.body.split(b" ")[0]))
    for number, times in enumerate(answering.unsent):
        assert times <= 1
        assert number not in delivered or not times or conversation.resets


async def test_a_client_that_leaves_while_its_frames_wait_for_their_turn() -> None:
    """Its last request was served all the same, and waited for as long as it might."""
    await converse(910886839894)


@many_trials
@pytest.mark.parametrize("part", range(4))
async def test_random_conversations(seed: int, part: int) -> None:
    rng = random.Random(f"{seed}/{part}")
    for _ in range(max(1, count("http2_conversations") // 4)):
        number = rng.getrandbits(40)
        print(f"conversation {number}")
        await converse(number)
