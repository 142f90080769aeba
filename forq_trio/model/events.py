"""Which kinds of lifecycle events there are."""

from typing import Literal, get_args

EventKind = Literal[
    "produced",
    "delivered",
    "acked",
    "nacked",
    "released",
    "extended",
    "lease_expired",
    "dead_lettered",
    "requeued",
    "expired",
    "deleted",
    "cancelled",
]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
"""What is stored of a kind is its place here, so the order never changes; new ones come at the end."""
