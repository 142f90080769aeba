"""Answers and bodies that have one JSON value a line."""

from forq_trio.http.message import Response
from forq_trio.model.endpoint import NDJSON
from forq_trio.model.error_answers import FIRST_HEADER, LAST_HEADER, NEXT_HEADER

_NDJSON_BYTES = NDJSON.encode()
_NEXT, _FIRST, _LAST = (name.lower().encode() for name in (NEXT_HEADER, FIRST_HEADER, LAST_HEADER))


def lines_answer(
    lines: bytes, following: int | None, first: int | None = None, last: int | None = None
) -> Response:
    """A page of lines; headers say where the next page begins, and the first and last id that are stored."""
    numbers = ((_NEXT, following), (_FIRST, first), (_LAST, last))
    headers = tuple((name, b"%d" % number) for name, number in numbers if number is not None)
    return Response(200, lines, _NDJSON_BYTES, headers)
