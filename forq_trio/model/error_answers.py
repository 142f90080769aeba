"""The API's answer to a wrong request, and our own headers on Forq's routes."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model.values import LEFT_OUT

ANSWER_HEADER = "X-Forq-Answer"
"""If a request has FULL in this header, Forq's own routes answer like ours: with all members."""

FULL = "full"

NEXT_HEADER, FIRST_HEADER, LAST_HEADER = "X-Forq-Next", "X-Forq-First", "X-Forq-Last"
RECEIPT_HEADER = "X-Forq-Receipt"

FIELD_HEADER = "X-Forq-Error-Field"
MESSAGE_HEADER = "X-Forq-Error-Message"
"""Forq's own routes answer `field` and `message` of an error in headers, in ASCII, other characters as Python's
escapes.
"""

Field = Annotated[
    str | None,
    Meta(description="The part of the request: a path ($.priority) into the body, or a parameter or header."),
    LEFT_OUT,
]
Explanation = Annotated[str | None, Meta(description="What is wrong, for people."), LEFT_OUT]


class PlaceView(Struct, frozen=True, gc=False, rename={"number": "field", "start": "from", "end": "to"}):
    """Where a cron expression is wrong: `CronPlace`.

    field: the number of its field, from 1; 0 for the whole. from, to: of the characters, from 0, `to` not included.
    allowed: what may be there, in words.
    """

    number: int
    start: int
    end: int
    allowed: str


class ErrorView(Struct, frozen=True, gc=False, omit_defaults=True):
    """The body of an error."""

    code: str
    field: Field = None  # left out where no part of the request is to blame
    message: Explanation = None
    place: PlaceView | None = None  # of a cron expression that is not valid
