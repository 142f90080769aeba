"""The client that handles the dead letters: it lists them, edits one, deletes one, and redrives the rest."""

import itertools
from time import perf_counter_ns

import msgspec
from msgspec import Struct

from bench.load.generator import Conversation, Request, Series
from bench.scenarios.handoff import Arrivals
from bench.soak.traffic import Calls

PAGE = 10
LOOK_AGAIN_NS = 50_000_000


class _Letter(Struct):
    id: str


class _Letters(Struct):
    messages: list[_Letter]


class _Redrive(Struct):
    id: str
    state: str


_letters = msgspec.json.Decoder(_Letters).decode
_redrive = msgspec.json.Decoder(_Redrive).decode


def caretaking(
    calls: Calls, queues: tuple[str, ...], series: Series, interval_seconds: float
) -> Conversation:
    """A round over these queues' dead letters at each interval. Nobody else takes messages from them."""
    arrivals = Arrivals(1 / interval_seconds)
    for queue in itertools.cycle(f"{queue}-dlq" for queue in queues):
        due_ns = arrivals.next_ns()
        response = yield Request(calls.queue("GET", queue, f"/dead-letters?limit={PAGE}"), series, due_ns)
        letters = _letters(response.body).messages if response.status == 200 else []
        if letters:
            path = f"/dead-letters/{letters[0].id}/resubmit"
            edit = {"attributes": {"repaired": "yes"}, "remove": True}
            yield Request(calls.queue("POST", queue, path, edit), series)
        if len(letters) > 1:
            body = {"ids": [letters[1].id]}
            yield Request(calls.queue("POST", queue, "/dead-letters/delete", body), series)
        start = {"filter": {}, "ratePerSecond": 1_000}
        response = yield Request(calls.queue("POST", queue, "/dead-letters/redrives", start), series)
        while 200 <= response.status < 300 and (task := _redrive(response.body)).state == "running":
            look = calls.queue("GET", queue, f"/dead-letters/redrives/{task.id}")
            response = yield Request(look, series, perf_counter_ns() + LOOK_AGAIN_NS)
