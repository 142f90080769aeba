"""Reads the JSON body of a request, and refuses one that does not fit its type, with a code.

If a member is repeated, its last value counts. The endpoints check ranges, because each range has a code of its own.
"""

from typing import Any, Generic, TypeVar

import msgspec

from forq_trio.http.forq_api.body_errors import refusal

BodyT = TypeVar("BodyT")


class BodyReader(Generic[BodyT]):
    """Reads one type of body.

    Raises Refused with `bad_request.body.unknown_field` for a member that the type does not know, if the type forbids
    unknown members, and with `bad_request.body.invalid` for anything else that does not fit the type.
    """

    __slots__ = ("_body", "_decode")

    def __init__(self, body: type[BodyT], shown: type[Any] | None = None) -> None:
        """shown: the type by which refusals are explained, None for `body`."""
        self._body = shown or body
        self._decode = msgspec.json.Decoder(body).decode

    def __call__(self, raw: bytes | msgspec.Raw) -> BodyT:
        try:
            if isinstance(raw, bytes) and not raw.isascii():
                raw.decode()  # the decoder does not check the UTF-8 of members that it ignores
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise refusal(self._body, bytes(raw), error) from None
