"""What is stored of a message from SQS besides the texts of its attributes: in one more attribute, as JSON.

Its name begins as no sender's may.
"""

import re
from base64 import b64decode
from collections.abc import Mapping

import msgspec
from msgspec import Struct

EXTRA = "AWS.SQS"
_BINARY, _NUMBER = "Binary", "Number"  # how the types of bytes and of numbers begin; all others are texts
_DIGITS = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NUMBER_LENGTH_MAX = 256


class Extra(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The value of the attribute EXTRA."""

    types: dict[str, str] = {}  # of the attributes that are no plain String
    deduplication_id: str | None = None
    trace_header: str | None = None
    sender: str | None = None  # the name of the access token; None for the server's own secret

    def attributes(self) -> dict[str, str]:
        """The attribute that has it; none if there is nothing to say."""
        return {} if self == NO_EXTRA else {EXTRA: msgspec.json.encode(self).decode()}


NO_EXTRA = Extra()
_read = msgspec.json.Decoder(Extra).decode


def read_extra(attributes: Mapping[str, str]) -> Extra | None:
    """What one of these attributes says of the others; None if none does, or if another dialect's sender wrote it."""
    text = attributes.get(EXTRA)
    if text is None:
        return None
    try:
        return _read(text)
    except msgspec.DecodeError:
        return None


def bytes_of_text(text: str, data_type: str) -> bytes | None:
    """The bytes of a Binary; None for a value of another type, and for one that is no base64."""
    if not data_type.startswith(_BINARY):
        return None
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def is_number(text: str) -> bool:
    """Whether a text can be the value of a Number."""
    return len(text) <= _NUMBER_LENGTH_MAX and _DIGITS.fullmatch(text) is not None


def fits(text: str, data_type: str) -> bool:
    """Whether a text can be a value of this type."""
    if data_type.startswith(_NUMBER):
        return is_number(text)
    return not data_type.startswith(_BINARY) or bytes_of_text(text, data_type) is not None
