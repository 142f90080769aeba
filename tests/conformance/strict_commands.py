"""Random commands about groups that keep an order: all that may close, open or empty a strict group."""

from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from forq_trio.model.commands import (
    Ack,
    Claim,
    Claims,
    Configure,
    Extend,
    Nack,
    Pause,
    ProduceMany,
    Redrive,
    RedrivePolicy,
    Release,
)
from forq_trio.model.queues.setting_values import GroupOrder, Overflow
from forq_trio.model.queues.settings import SettingsChange
from support.by_id import BY_ID

from .long_commands import one_of
from .random_commands import kinds_of_claims, maybe, messages, some_ids, stand_in_ids, stand_in_receipts

queues = st.sampled_from("aab")
receipts = stand_in_receipts.map(tuple)


def _of_group(message, group, scoped):
    """The message in a group. scoped: its deduplication id is the group's, else that of the whole queue."""
    known = message.deduplication_id
    if scoped and known is not None:
        known = f"{group} {known}"
    return replace(message, group=group, deduplication_id=known)


grouped = st.builds(_of_group, messages, st.sampled_from("gggh"), st.booleans())
sends = st.builds(ProduceMany, queues, st.lists(grouped, min_size=1, max_size=5).map(tuple))
claims = st.builds(
    Claim,
    queues,
    st.sampled_from((1, 2, 2, 3, 9)),
    st.sampled_from((None, 0, 1_000, 40_000)),
    redrive_policy=maybe(RedrivePolicy(1, "x"), RedrivePolicy(1)),
)
settlements = one_of(
    *[st.builds(Ack, queues, receipts, claims=kinds_of_claims)] * 3,
    st.builds(Ack, st.none(), receipts, claims=st.sampled_from((Claims.CURRENT, Claims.LEASED))),
    *[st.builds(Extend, queues, receipts, st.sampled_from((0, 0, 1_000, 40_000)), kinds_of_claims)] * 2,
    st.builds(Nack, queues, receipts, maybe(0, 1_000), final=st.sampled_from((False, False, True))),
    st.builds(Release, queues, receipts, st.sampled_from((0, 1_000))),
)
moves = one_of(
    *[st.builds(kind, queues, stand_in_ids) for kind in BY_ID],
    *[st.builds(Redrive, st.just("a-dlq"), some_ids, maybe("a", "b"))] * 2,
)
ordering = st.builds(
    lambda queue, order, messages_max, in_flight_max: Configure(
        queue,
        SettingsChange(
            group_order=order,
            group_in_flight_max=in_flight_max,
            max_messages=messages_max,
            overflow=UNSET if messages_max is UNSET else Overflow.DROP_OLDEST,
        ),
    ),
    queues,
    st.sampled_from((*[GroupOrder.STRICT] * 4, GroupOrder.FAIR, None)),
    st.sampled_from((UNSET, UNSET, None, 4)),
    st.sampled_from((UNSET, UNSET, None, 2)),
)
"""Strict groups are switched on and off, also on full queues."""

batches = st.lists(
    one_of(
        *[sends, claims] * 3,
        *[settlements] * 4,
        *[ordering] * 2,
        moves,
        st.builds(Pause, queues, st.sampled_from((False, False, True))),
    ),
    min_size=1,
    max_size=5,
)
