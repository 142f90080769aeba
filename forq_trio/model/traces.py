"""W3C Trace Context in the attributes of a message, read without OpenTelemetry.

The sender of a message puts the context of its span into the attributes `traceparent` and `tracestate`; they are stored
and delivered with it. `forq_trio.model.tracing` writes and follows them, and needs OpenTelemetry.
"""

import re
import sys
from collections.abc import Mapping

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
_PARENT = re.compile(r"00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]([0-9a-f])")
_SAMPLED = 1
_STATE_LENGTH_MAX = 512
_STATE_MEMBERS_MAX = 32
_KEY = r"[a-z0-9][a-z0-9_\-*/]{0,240}(?:@[a-z][a-z0-9_\-*/]{0,13})?"
_STATE_MEMBER = re.compile(_KEY + r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")


def sampled_trace(attributes: Mapping[str, str] | None) -> str | None:
    """The id of the trace that a message belongs to, 32 hexadecimal digits; None if there is none, or nobody stores it.

    The sender decides whether its trace is stored, and says so in the flags of `traceparent`.
    """
    text = attributes.get(TRACEPARENT) if attributes else None
    found = None if text is None else _PARENT.fullmatch(text)
    if found is None or not int(found[2], 16) & _SAMPLED or not int(found[1], 16):
        return None
    return found[1]


def is_tracestate(text: str) -> bool:
    """Whether a text is a `tracestate` as W3C has it, with a length that everybody has to pass on.

    OpenTelemetry takes time in the square of the blanks of a longer one, and logs each member that is not right; both
    are up to whoever sent it.
    """
    if not text or len(text) > _STATE_LENGTH_MAX:
        return False
    members = [member.strip(" \t") for member in text.split(",")]
    return len(members) <= _STATE_MEMBERS_MAX and all(
        _STATE_MEMBER.fullmatch(each) for each in members if each
    )


def sdk_is_set_up() -> bool:
    """Whether an SDK of OpenTelemetry was set up in this process, as `opentelemetry-instrument` does it.

    Imports nothing: where nobody has imported OpenTelemetry, nobody has set it up.
    """
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
