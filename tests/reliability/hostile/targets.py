"""What is fuzzed: each target takes any bytes, and an exception that leaves it is a bug found.

`parser` gives the bytes to the HTTP/1.1 parser whole, byte by byte and in pieces: it sees the same requests each time.
`connection` sends them over a socket to the transport with all dialects behind it: every answer is well-formed, nothing
hangs, nothing is an internal error. `readers` gives them to every reader of a body, and of receipts, ids and names:
they read, or refuse in the one way they have. `forq` and `sasquatch` call an endpoint with them: every answer is one
the dialect documents.

Inputs of the last three begin with a byte that chooses what reads them; the others' with one that says where to cut.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import msgspec
import trio
import trio.testing

from forq_trio.http.forq_api import keys, sends
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.refusals import TRANSPORT_CODES, Refused, answer
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.http.sasquatch_api import bodies as sasquatch_bodies
from forq_trio.http.sasquatch_api.errors import CODES as SASQUATCH_CODES
from forq_trio.http.sasquatch_api.errors import SasquatchError
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.h1 import RequestParser
from forq_trio.http.transport.response_bytes import CLOSE
from forq_trio.model.errors import CallerError
from forq_trio.model.forq_error import REASONS
from forq_trio.model.messages import types as model
from forq_trio.model.schedules.types import Timing
from forq_trio.schedules.cron import check_cron
from forq_trio.schedules.times import NominalTimes, check_timing
from support.forq_api import make_request

from .whole_app import SECONDS_MAX, SECRET, WholeApp, check_answers, exchange, open_whole_app

SMALL = TransportConfig(header_bytes_max=400, uri_bytes_max=100, headers_max=6, body_bytes_max=300)
PIECES_MAX = 64
TOO_LARGE = (413, "bad_request.body.content.exceeds_limit")

Target = Callable[[bytes], None]


def pieces_of(data: bytes) -> Iterator[bytes]:
    """Cut `data` into pieces, whose length its first byte says; 0 is one piece."""
    size = data[0] if data else 0
    rest = data[1:]
    step = max(size, -(-len(rest) // PIECES_MAX)) if size else max(len(rest), 1)
    for start in range(0, len(rest), step):
        yield rest[start : start + step]


def parse(pieces: Iterator[bytes]) -> tuple[list[tuple[Any, ...]], int]:
    """What a connection would see: its requests, and the status of the refusal."""
    parser = RequestParser(SMALL, "192.0.2.1", nullcontext)
    seen = []
    for piece in pieces:
        parser.feed(piece)
        assert parser.body_bytes_received <= SMALL.body_bytes_max + len(piece)
        for each, connection in parser.complete:
            seen.append((each.method, each.path, each.query, each.headers, each.body, connection))
            if connection is CLOSE:
                return seen, 0
        parser.complete.clear()
        if parser.refused:
            break
    return seen, parser.refused


def fuzz_parser(data: bytes) -> None:
    whole = parse(iter([data[1:]]))
    by_byte = parse(data[place : place + 1] for place in range(1, len(data)))
    in_pieces = parse(pieces_of(data))
    for requests, refused in (whole, by_byte, in_pieces):
        assert refused == 0 or refused in TRANSPORT_CODES
        for _, path, _, headers, body, _ in requests:
            assert path == "*" or path.startswith("/")
            assert not any(byte in value for byte in b"\r\n" for value in headers.values())
            assert len(body) <= SMALL.body_bytes_max
    for other in (by_byte, in_pieces):
        if 431 in (whole[1], other[1]):
            # Bytes of a head that no header has (blanks, repeated names) are counted only while it is not whole.
            shorter = min(len(whole[0]), len(other[0]))
            assert whole[0][:shorter] == other[0][:shorter]
        else:
            assert whole[0] == other[0]


def fuzz_connection(data: bytes) -> None:
    async def run() -> None:
        with trio.fail_after(SECONDS_MAX):
            async with open_whole_app() as app:
                seen = await exchange(app.handler, SMALL, list(pieces_of(data)))
        assert seen.errors == []
        if not data[1:].startswith(b"PRI * HTTP/2.0"):
            check_answers(seen.received, seen.methods)

    trio.run(run)


def _is_object(raw: bytes) -> bool:
    return isinstance(json.loads(raw), dict)


def _body_reader(body: Any) -> Target:
    read = BodyReader(body)

    def check(raw: bytes) -> None:
        read(raw)
        assert _is_object(raw)

    return check


def _sasquatch_reader(body: Any) -> Target:
    read = sasquatch_bodies.SasquatchBodyReader(body, 10_000)

    def check(raw: bytes) -> None:
        read(make_request("POST", "/", raw))
        assert _is_object(raw)

    return check


def _text(read: Callable[[str], object]) -> Target:
    return lambda raw: read(raw.decode("latin-1")) and None


def _check_receipt(text: str) -> None:
    receipt = model.Receipt.parse(text)
    assert model.Receipt.parse(str(receipt)) in (receipt, (0, 0))


def _check_message(raw: bytes) -> None:
    assert _is_object(raw) or not sends.read_message(raw)


def _check_timing(raw: bytes) -> None:
    """One that is valid has runs, or none, without an error."""
    timing = BodyReader(Timing)(raw)
    check_timing(timing)
    NominalTimes(timing, 0).next(0, 2)


def load_app() -> tuple[list[Route], dict[str, Any]]:
    """The routes, and the types of the bodies they take by the operations' names."""

    async def run() -> list[Route]:
        async with open_whole_app() as app:
            return app.routes

    routes = trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    return routes, {each.operation.name: each.operation.body for each in routes if each.operation.body}


ROUTES, BODIES = load_app()
QUERIES = {each.operation.name: each.operation.query for each in ROUTES if each.operation.query}
FORQ = [
    each for each in ROUTES if (each.operation.tag != "Sasquatch" and "{" in each.path) or each.operation.body
]
SASQUATCH = [each for each in ROUTES if each.operation.tag == "Sasquatch"]
READERS: dict[str, Target] = {
    **{f"Forq {name}": _body_reader(body) for name, body in BODIES.items()},
    "Forq send": lambda raw: sends.read_message(raw) and None,
    "Forq offer": lambda raw: keys.read_offer(raw) and None,
    "Forq batch": lambda raw: [sends.read_our_message(each) for each in sends.split_messages(raw)] and None,
    "Sasquatch send": _sasquatch_reader(sasquatch_bodies.SendRequest),
    "Sasquatch batch": _sasquatch_reader(sasquatch_bodies.SendBatchRequest),
    "Sasquatch receive": _sasquatch_reader(sasquatch_bodies.SasquatchReceive),
    "Sasquatch handles": _sasquatch_reader(sasquatch_bodies.HandlesRequest),
    "Sasquatch queue": _sasquatch_reader(sasquatch_bodies.QueueRequest),
    "receipt": _text(_check_receipt),
    "message id": _text(model.check_message_id),
    "queue": _text(model.check_queue_name),
    "cron": _text(check_cron),
    "timing": _check_timing,
    **{f"query of {name}": _text(QueryReader(query)) for name, query in QUERIES.items()},
}
_READERS = list(READERS.values())


def fuzz_readers(data: bytes) -> None:
    read = _READERS[data[0] % len(_READERS)] if data else _READERS[0]
    try:
        read(data[1:])
    except Refused as refusal:
        _check_forq(answer(refusal))
    except (SasquatchError, CallerError):
        return


def _check_forq(response: Response) -> None:
    """An answer as Forq's API gives them; an internal error is none."""
    if response.status < 400:
        return
    body = msgspec.json.decode(response.body)
    assert response.status == REASONS[body["code"]].status or (response.status, body["code"]) == TOO_LARGE
    assert body["code"] != "internal"
    headers = dict(response.headers)
    assert ("message" in body) != (b"x-forq-error-message" in headers)
    assert body.get("message", "").isprintable()
    assert all(value.isascii() and value.decode().isprintable() for value in headers.values())


def _check_sasquatch(response: Response) -> None:
    if response.status < 400:
        return
    error = msgspec.json.decode(response.body)["error"]
    assert SASQUATCH_CODES[error["code"]].status == response.status
    assert error["code"] != "InternalError"
    assert error["message"].isprintable()


def _request(app: WholeApp, routes: list[Route], data: bytes) -> Request:
    """Lines: values of the path's parameters between slashes, query, receipt header; the rest is the body."""
    route = routes[data[0] % len(routes)] if data else routes[0]
    data = data.replace(b"RECEIPT", app.receipt.encode()).replace(b"DEAD", app.dead_letter.encode())
    lines = data[1:].split(b"\n", 3)
    values, query, receipt, body = lines + [b""] * (4 - len(lines))
    path = route.path
    for value in values.decode("latin-1").split("/"):
        before, opening, after = path.partition("{")
        if opening:
            path = before + value.replace("?", "") + after.partition("}")[2]
    headers = {b"x-api-key": SECRET.encode()}
    if receipt:
        headers[b"x-forq-receipt"] = receipt
    return make_request(route.method, f"{path}?{query.decode('latin-1')}", body, headers)


def _fuzz_endpoints(routes: list[Route], data: bytes, check: Callable[[Response], None]) -> None:
    async def run() -> None:
        async with open_whole_app() as app:
            response = await app.handler(_request(app, routes, data))
        if response.content_type == b"application/json" and response.status != 204:
            msgspec.json.decode(response.body)
        check(response)

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def fuzz_forq(data: bytes) -> None:
    _fuzz_endpoints(FORQ, data, _check_forq)


def fuzz_sasquatch(data: bytes) -> None:
    _fuzz_endpoints(SASQUATCH, data, _check_sasquatch)


TARGETS: dict[str, Target] = {
    "parser": fuzz_parser,
    "connection": fuzz_connection,
    "readers": fuzz_readers,
    "forq": fuzz_forq,
    "sasquatch": fuzz_sasquatch,
}
