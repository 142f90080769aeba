"""Random filters of messages, for searches."""

from hypothesis import strategies as st

from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.types import REASON_EXPIRED, REASON_OVERFLOW, Status

from .random_commands import maybe

filters = st.builds(
    MessageFilter,
    reason=maybe(REASON_EXPIRED, REASON_OVERFLOW),
    since=maybe(1_700_000_000_000, 1_700_000_040_000),
    until=maybe(1_700_000_000_000, 1_700_000_040_000),
    attributes=st.sampled_from(({}, {}, {"k": "v"}, {"k": "w", "v": "k"})),
    text=maybe("x", "ö", "", "%"),
    error=maybe("", "broke"),
    status=maybe(*Status),
    above_sequence=maybe(0, 5, 20),
)
