"""Reads the JSON body of a request: a body that is not of its type is refused with a code.

The last of a repeated member counts. Ranges are checked by the endpoints, because each has its own code.
"""

from typing import Any, Generic, TypeVar

import msgspec

from forq_trio.http.forq_api.body_errors import refusal

BodyT = TypeVar("BodyT")


class BodyReader(Generic[BodyT]):
    """Reads one type of body.

    Raises Refused with `bad_request.body.unknown_field` for an object with a member that its type does not know, if
    that type forbids it, and `bad_request.body.invalid` for anything else that is not of the type.
    """

    __slots__ = ("_body", "_decode")

    def __init__(self, body: type[BodyT], shown: type[Any] | None = None) -> None:
        """shown: the type by which refusals are explained, None for `body`."""
        self._body = shown or body
        self._decode = msgspec.json.Decoder(body).decode

    def __call__(self, raw: bytes | msgspec.Raw) -> BodyT:
        try:
            if isinstance(raw, bytes) and not raw.isascii():
                raw.decode()  # the decoder does not look into members it ignores
            return self._decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise refusal(self._body, bytes(raw), error) from None
