"""Random commands with so many parts that they take many batches where each may do little."""

from hypothesis import strategies as st
from msgspec.structs import replace

from forq_trio.model.access.types import SECRET
from forq_trio.model.commands import (
    Ack,
    AckById,
    AckWithResult,
    AddToMessageBatch,
    Claim,
    CloseMessageBatch,
    Configure,
    Delete,
    DiscardMessages,
    DiscardStage,
    DropKey,
    DropKeys,
    EndStages,
    Extend,
    Nack,
    NackById,
    OfferMany,
    OpenMessageBatch,
    ProduceMany,
    Publish,
    Purge,
    PurgeHistory,
    Redrive,
    Release,
    RescheduleKey,
    SaveSchedule,
    ShowMessageBatches,
    StagePage,
    TrimEvents,
    TrimHistory,
)
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.types import NewMessageWithDefaultBound, Receipt
from forq_trio.model.publishing.types import Stage
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import SettingsChange
from support.by_id import BY_ID

from .random_commands import (
    CONTENTS,
    delays_ms,
    kinds,
    kinds_of_claims,
    maybe,
    messages,
    offerings,
    parts,
    policy,
    schedules,
    sent_by_batches,
)


def one_of(*strategies):
    """One of these, each as likely as the others; Hypothesis takes all branches of all strategies as alike."""
    return st.integers(0, len(strategies) - 1).flatmap(strategies.__getitem__)


queues = st.sampled_from("aaab")
receipts = st.builds(
    lambda ages, count: tuple(Receipt(age, 0) for age in ages[:count]),
    st.permutations(range(8)),
    st.integers(3, 8),
)
ids = st.builds(
    lambda ages, count: tuple(map(str, ages[:count])), st.permutations(range(8)), st.integers(3, 8)
)
any_queue = st.just(None)

ready = st.builds(
    NewMessageWithDefaultBound,
    content=st.sampled_from(CONTENTS),
    priority=st.sampled_from((100, 100, 1_000)),
    group=st.sampled_from((None, "g", "h", "i")),
    max_attempts=maybe(1, 2),
    dead_letter_queue=maybe("", "x"),
)
sends = st.builds(
    ProduceMany, queues, st.lists(one_of(ready, ready, messages), min_size=3, max_size=8).map(tuple)
)
claims = st.builds(Claim, queues, st.integers(3, 9), st.sampled_from((1_000, 40_000)), redrive_policy=policy)
settlements = st.one_of(
    st.builds(Ack, any_queue, receipts),
    st.builds(Ack, queues, receipts, claims=kinds_of_claims),
    st.builds(AckWithResult, any_queue, receipts, st.just("r"), st.just(1_000)),
    st.builds(Nack, queues, receipts, maybe(0, 1_000), maybe("broke"), final=st.booleans()),
    st.builds(DiscardMessages, queues, receipts, st.just("no use")),
    st.builds(Extend, any_queue, receipts, st.sampled_from((0, 1_000, 40_000))),
    st.builds(Extend, queues, receipts, st.sampled_from((0, 1_000, 40_000)), kinds_of_claims),
    st.builds(Release, queues, receipts, delays_ms),
)
moves = st.one_of(st.builds(Redrive, queues, ids, maybe("a", "b")), st.builds(Delete, queues, ids))
offers = st.builds(
    OfferMany,
    queues,
    st.lists(st.tuples(offerings, st.sampled_from("klmno")), min_size=3, max_size=8).map(
        lambda some: tuple(replace(each, key=key) for each, key in some)
    ),
)
batch_ids = st.sampled_from("pqr")
opening = st.builds(
    lambda id, outer, **terms: OpenMessageBatch(id, NewMessageBatch(outer=outer, **terms)),
    batch_ids,
    maybe("p", "q", "r"),
    then=sent_by_batches,
    on_dead=sent_by_batches,
    needs=st.sampled_from(("ended", "done")),
)
members = st.builds(AddressedMessage, queues, messages)
batching = one_of(
    opening,
    *[st.builds(AddToMessageBatch, batch_ids, st.lists(members, min_size=1, max_size=4).map(tuple))] * 4,
    st.builds(CloseMessageBatch, batch_ids, st.sampled_from((False, False, False, True))),
    st.builds(ShowMessageBatches, limit=st.just(9)),
)
removals = st.one_of(
    st.builds(Purge, queues),
    st.builds(DropKeys, queues, kinds),
    st.builds(PurgeHistory, queues),
    st.builds(TrimEvents, st.sampled_from((-1, 30_000)), st.just(10**9)),
    st.builds(TrimHistory, st.sampled_from((-1_000, 1)), st.sampled_from((20, 1_000))),
    st.just(EndStages()),
)
runs = st.builds(SaveSchedule, st.just("e"), schedules)
evicting = st.builds(
    lambda queue, most, size, overflow: Configure(
        queue, SettingsChange(max_messages=most, max_bytes=size, overflow=overflow)
    ),
    queues,
    st.sampled_from((2, 4, None)),
    st.sampled_from((None, 6, 30)),
    st.sampled_from((Overflow.DROP_OLDEST, Overflow.DEAD_LETTER)),
)
limiting = st.builds(
    lambda queue, most: Configure(queue, SettingsChange(group_in_flight_max=most)), queues, maybe(1)
)


def _published(queue, pages, version):
    staged = [StagePage(queue, "s", number, tuple(page), SECRET) for number, page in enumerate(pages)]
    return [
        DiscardStage(queue, "s"),
        *staged,
        Publish("m", version, (Stage(queue, "s", len(pages)),), False, SECRET),
    ]


publications = st.builds(
    _published,
    queues,
    st.lists(st.lists(parts, min_size=1, max_size=3), min_size=1, max_size=2),
    st.integers(1, 99),
)


one_id = st.integers(0, 7).map(str)
keys = st.sampled_from("klmno")
together = one_of(
    *[
        st.lists(each, min_size=3, max_size=6)
        for each in (
            st.builds(Ack, any_queue, receipts.map(lambda some: some[:2])),
            st.builds(AckById, queues, one_id),
            st.builds(NackById, queues, one_id),
            *[st.builds(kind, queues, one_id) for kind in BY_ID],
            st.builds(Delete, queues, one_id.map(lambda each: (each,))),
            st.builds(RescheduleKey, queues, keys, st.just(""), st.sampled_from((0, 9_000)), st.just(False)),
            st.builds(DropKey, queues, keys, st.just(""), st.just(False)),
        )
    ]
)
"""Several commands of one kind in a batch."""


def alone(*commands):
    """One of these commands as a batch."""
    return one_of(*commands).map(lambda command: [command])
