"""Whether an HTTP2-Settings header can be taken at its word (RFC 7540 sections 3.2.1 and 6.5.2).

What is wrong in it would only be noticed after the connection has been handed over, when there is nobody left who
could answer the request. So an upgrade with a bad one is declined, as if it had not been asked for.
"""

import re
import struct
from base64 import urlsafe_b64decode
from collections.abc import Mapping

# A setting is six bytes: eight characters, so padding never comes up.
_PAYLOAD = re.compile(rb"(?:[A-Za-z0-9_-]{8})*")
_SETTING = struct.Struct(">HL")

# What a known setting may be, both ends included; unknown ones are ignored.
_RANGES: Mapping[int, tuple[int, int]] = {
    2: (0, 1),  # ENABLE_PUSH
    4: (0, 2**31 - 1),  # INITIAL_WINDOW_SIZE
    5: (2**14, 2**24 - 1),  # MAX_FRAME_SIZE
    8: (0, 1),  # ENABLE_CONNECT_PROTOCOL (RFC 8441)
}
_ANY = (0, 2**32 - 1)


def are_good_settings(header: bytes) -> bool:
    """Whether the value of the header is a SETTINGS payload with only values that are allowed."""
    if _PAYLOAD.fullmatch(header) is None:
        return False
    for setting, value in _SETTING.iter_unpack(urlsafe_b64decode(header)):
        low, high = _RANGES.get(setting, _ANY)
        if not low <= value <= high:
            return False
    return True
