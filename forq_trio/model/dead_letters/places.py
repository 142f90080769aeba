"""The cursors of lists: where a page ended and the next one begins, as text for a URL."""

import re
from typing import NamedTuple, Self

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import ListedState
from forq_trio.model.errors import OutOfRange

_NUMBER = r"-?[0-9]{1,19}"
_CLAIM_PLACE = re.compile(rf"({_NUMBER})_({_NUMBER})_({_NUMBER})")
_SEQUENCE = re.compile(r"[0-9]{1,19}")


class ClaimPlace(NamedTuple):
    """The place of a ready message in the claim order."""

    priority: int
    position: int
    seq: int

    def __str__(self) -> str:
        return "_".join(map(str, self))

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """Read the text form. Raises OutOfRange."""
        match = _CLAIM_PLACE.fullmatch(cursor)
        if match is None:
            raise _malformed()
        return cls(*(_bounded(int(part)) for part in match.groups()))


def parse_sequence(cursor: str) -> int:
    """Read the cursor of a list that is sorted by sequence number. Raises OutOfRange."""
    if _SEQUENCE.fullmatch(cursor) is None:
        raise _malformed()
    return _bounded(int(cursor))


def check_cursor(state: ListedState, cursor: str | None) -> None:
    """Raise OutOfRange unless `cursor` is None, or was made for a list of this state."""
    if cursor is not None:
        if state == "ready":
            ClaimPlace.parse(cursor)
        else:
            parse_sequence(cursor)


def _bounded(number: int) -> int:
    if abs(number) > limits.SEQUENCE_MAX:
        raise _malformed()
    return number


def _malformed() -> OutOfRange:
    return OutOfRange("cursor must be the one of an earlier page of this list", field="cursor")
