"""A client of Sasquatch's API: sends, receives, deletes, and leaves a few until they are dead letters there too."""

import random
from typing import Any

import msgspec
from msgspec import Struct

from bench.load.generator import Conversation, Request
from bench.scenarios.handoff import STAMP_DIGITS, Arrivals
from bench.soak.record import Meters
from bench.soak.traffic import Calls

QUEUES = ("soak-sasquatch", "soak-sasquatch_lifo")
BATCH = 10
LEFT_SHARE = 0.1
LOOK_SHARE = 0.2
DEAD_SHARE = 0.2


class _Message(Struct):
    receipt_handle: str


class _Received(Struct):
    messages: list[_Message]


_received = msgspec.json.Decoder(_Received).decode


class Sasquatch:
    """One connection on one queue."""

    def __init__(self, calls: Calls, queue: str, meters: Meters, rng: random.Random) -> None:
        self._calls = calls
        self._queue = queue
        self._series = meters.timed("sasquatch")
        self._rng = rng

    def conversation(self, arrivals: Arrivals) -> Conversation:
        """A round at each moment of the timetable."""
        while True:
            due_ns = arrivals.next_ns()
            message = {"queue_name": self._queue, "message_body": f"{due_ns:0{STAMP_DIGITS}d}"}
            if self._rng.random() < LOOK_SHARE:
                yield self._post("send_batch", due_ns, messages=[message] * 3)
                yield self._post("queue_length", queue_name=self._queue)
                yield self._post("receive", queue_name=self._queue, peek=True, wait_time_seconds=0)
            else:
                attributes = {"source": "soak"}
                yield self._post("send", due_ns, **message, priority=100, message_attributes=attributes)
            yield from self._consume(self._queue, self._rng.random() < LEFT_SHARE)
            if self._rng.random() < DEAD_SHARE:
                yield from self._consume(f"{self._queue}-dlq", False)

    def _consume(self, queue: str, leave: bool) -> Conversation:
        """Receive; then delete what came, or make it visible again, so that it is received too often in the end."""
        wanted: dict[str, Any] = {"max_number_of_messages": BATCH, "wait_time_seconds": 0}
        if queue == self._queue:
            wanted |= {"max_receives": 2, "dead_letter_queue_name": f"{queue}-dlq"}
        response = yield self._post("receive", queue_name=queue, **wanted)
        handles = (
            [each.receipt_handle for each in _received(response.body).messages]
            if response.status == 200
            else []
        )
        if handles and leave:
            yield self._post("change_visibility", receipt_handles=handles, visibility_timeout=0)
        elif handles:
            yield self._post("delete", receipt_handles=handles)

    def _post(self, path: str, due_ns: int = 0, **body: object) -> Request:
        return Request(self._calls("POST", f"/{path}", body), self._series, due_ns)
