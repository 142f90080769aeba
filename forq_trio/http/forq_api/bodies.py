"""Reads the JSON body of a request: a body that is not of its type is refused with a code.

The last of a repeated member counts. Ranges are checked by the endpoints, because each has its own code.
"""

import re
from typing import Generic, TypeVar

import msgspec

from forq_trio.http.forq_api.codes import BODY_INVALID, UNKNOWN_FIELD, refused

BodyT = TypeVar("BodyT")

FIELD_LENGTH_MAX = 100
"""How many characters of an unknown member's name an answer repeats."""

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`( - at `.*`)?", re.DOTALL)


class BodyReader(Generic[BodyT]):
    """Reads one type of body.

    Raises Refused with `bad_request.body.unknown_field` for an object with a member that its type does not know, if
    that type forbids it, and `bad_request.body.invalid` for anything else that is not of the type.
    """

    __slots__ = ("_decode",)

    def __init__(self, body: type[BodyT]) -> None:
        self._decode = msgspec.json.Decoder(body).decode

    def __call__(self, raw: bytes | msgspec.Raw) -> BodyT:
        try:
            if isinstance(raw, bytes) and not raw.isascii():
                raw.decode()  # the decoder does not look into members it ignores
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            unknown = _UNKNOWN_FIELD.fullmatch(str(error))
            if unknown is None or not _is_json(raw):
                raise refused(BODY_INVALID) from None
            raise refused(UNKNOWN_FIELD, field=unknown[1][:FIELD_LENGTH_MAX]) from None


def _is_json(raw: bytes | msgspec.Raw) -> bool:
    """True if a body is JSON to its end: the decoder stopped at its first unknown member."""
    try:
        _read_any(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


_read_any = msgspec.json.Decoder(msgspec.Raw).decode
