"""The offer that waits behind a message in process, as it is stored in the row of its key."""

import msgspec
from msgspec import Struct

from forq_trio.model.keys.types import Offering


class Waiting(Struct, frozen=True, gc=False):
    """An offer that waits behind the message in process. size: the bytes of its content and attributes."""

    offering: Offering
    due: int
    revision: int
    size: int
    offers: int
    first_offer_at: int
    last_offer_at: int
    max_wait_until: int | None


_WAITING = msgspec.json.Decoder(Waiting)
_encode = msgspec.json.Encoder().encode


def write_waiting(waiting: Waiting) -> bytes:
    return _encode(waiting)


def read_waiting(column: bytes) -> Waiting:
    return _WAITING.decode(column)
