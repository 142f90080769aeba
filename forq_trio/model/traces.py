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


def sampled_trace(attributes: Mapping[str, str] | None) -> str | None:
    """The id of the trace that a message belongs to, 32 hexadecimal digits; None if there is none, or nobody stores it.

    The sender decides whether its trace is stored, and says so in the flags of `traceparent`.
    """
    text = attributes.get(TRACEPARENT) if attributes else None
    found = None if text is None else _PARENT.fullmatch(text)
    if found is None or not int(found[2], 16) & _SAMPLED or not int(found[1], 16):
        return None
    return found[1]


def sdk_is_set_up() -> bool:
    """Whether an SDK of OpenTelemetry was set up in this process, as `opentelemetry-instrument` does it.

    Imports nothing: where nobody has imported OpenTelemetry, nobody has set it up.
    """
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)
