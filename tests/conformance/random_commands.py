"""Random commands, for whoever wants to try them on an engine.

What only an engine can give has stand-ins: `Receipt(n, 0)` is the receipt of the n-th delivery counted from the latest,
`Receipt(n, 1)` one of its message that no claim gave, a message id "n" is that of the n-th message sent, counted the
same way, revision n is the n-th lowest before the last sequence; times are relative to the batch's.
"""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from hypothesis import strategies as st

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import SECRET, Key, Scope
from forq_trio.model.commands import (
    Ack,
    AckById,
    AckRevision,
    AckWithResult,
    AddToMessageBatch,
    BindTable,
    ChangeRedrive,
    Claim,
    Claims,
    CloseMessageBatch,
    Compact,
    Configure,
    Delete,
    DeleteSchedule,
    DiscardMessages,
    DiscardStage,
    DropKey,
    DropKeys,
    DropPages,
    EndSessions,
    EndStages,
    Extend,
    ForgetApp,
    ForgetConsumer,
    ForgetQueue,
    ForgetRedrive,
    LeaseMessages,
    MoveBack,
    Nack,
    NackById,
    NameQueues,
    NoteConsumerUse,
    NoteSessionUse,
    NoteTokenUse,
    OfferMany,
    OpenConsumer,
    OpenMessageBatch,
    Optimize,
    Pause,
    PauseSchedule,
    Ping,
    Produce,
    ProduceEach,
    ProduceMany,
    Publish,
    Purge,
    PurgeHistory,
    Redrive,
    RedrivePolicy,
    RelayMessages,
    Release,
    RescheduleKey,
    Resubmit,
    RevokeToken,
    RunSchedule,
    SaveRedrive,
    SaveSchedule,
    SaveSession,
    SaveToken,
    SettleLease,
    ShowMessageBatches,
    StagePage,
    Sweep,
    SweepKind,
    TakeSetAside,
    TrimEvents,
    TrimHistory,
)
from forq_trio.model.consumers.types import Settling
from forq_trio.model.dead_letters.redrives import RedriveState, RedriveStep
from forq_trio.model.keys.types import Mode, Offering
from forq_trio.model.message_batches.types import AddressedMessage, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import NewMessageWithDefaultBound, Receipt
from forq_trio.model.messages.where import where_of
from forq_trio.model.outboxes.types import RelayedMessage
from forq_trio.model.publishing.types import Stage, StagedPart
from forq_trio.model.queues.settings import QueueTable, SettingsChange
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.rules import message_bytes
from support.access import access_token
from support.by_id import BY_ID
from support.redrives import redrive_task
from support.settings import EXAMPLES

SENT_TO = ("a", "a", "b", "c_lifo")
QUEUES = ("a", "b", "c_lifo", "x", "a-dlq", "b-dlq", "c_lifo-dlq", "x-dlq")

keys = st.sampled_from((SECRET, SECRET, Key("t", "a"), Key("u", "[ab]"), Key("v", "*")))
queues = st.sampled_from((*SENT_TO, *SENT_TO, *QUEUES))
sent_to = st.sampled_from(SENT_TO)
stand_in_receipts = st.lists(
    st.builds(Receipt, st.integers(0, 9), st.sampled_from((0,) * 9 + (1,))), min_size=1, max_size=4
)
kinds_of_claims = st.sampled_from((Claims.CURRENT, *Claims))
stand_in_ids = st.integers(0, 9).map(str)
some_ids = st.lists(stand_in_ids, min_size=1, max_size=4).map(tuple)
delays_ms = st.sampled_from((0, 1, 1_000, 30_000, 70_000))
leases_ms = st.sampled_from((0, 1, 1_000, 40_000, 200_000))
some_attributes = st.sampled_from(({}, {"k": "v"}, {"k": "", "größe": "v"}))


def maybe(*values):
    """Mostly nothing."""
    return st.sampled_from((None,) * 2 * len(values) + values)


def valid(offering):
    """The offer without what its mode or its time forbids."""
    if offering.mode != "debounce":
        offering = msgspec.structs.replace(offering, max_wait_ms=None)
    elif offering.delay_ms is None:
        offering = msgspec.structs.replace(offering, delay_ms=1_000)
    return offering if offering.delay_ms is None else msgspec.structs.replace(offering, process_after=None)


CONTENTS = ("", "x", "größe", "NaN", '\ufeff{"a": 1}', "[" * 101 + "]" * 101)
"""Any text is a content, also what looks like JSON and is none that others read."""

messages = st.builds(
    NewMessageWithDefaultBound,
    content=st.sampled_from(CONTENTS),
    process_after=maybe(-5_000, 0, 1, 1_000, 50_000),
    priority=st.sampled_from((0, 100, 100, 100, 1_000)),
    deduplication_id=maybe("k", "l"),
    deduplication_window_ms=st.sampled_from((None, 1, 5_000)),
    delay_ms=maybe(0, 1, 1_000),
    ttl_ms=maybe(1, 1_000, 30_000),
    attributes=st.one_of(st.none(), some_attributes),
    group=st.sampled_from((None, None, None, "g", "g", "h")),
    max_attempts=maybe(1, 2),
    dead_letter_queue=maybe("", "x", "a"),
    default_max_receives=maybe(1, 2),
)
policy = maybe(
    *(RedrivePolicy(2, "x"), RedrivePolicy(1, "a-dlq", 2), RedrivePolicy(1), RedrivePolicy(2, "a")),
    *(RedrivePolicy(), RedrivePolicy(None, "x")),
)
wheres = st.sampled_from(({"k": "v"}, {"k": {"not": "v"}}, {"k": {"not": "v", "orAbsent": True}})).map(
    where_of
)
claims = st.builds(
    Claim,
    queues,
    st.integers(1, 5),
    st.one_of(st.none(), leases_ms),
    redrive_policy=policy,
    where=st.one_of(st.just(()), st.just(()), wheres),
)
changes = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(example.drawn) for name, example in EXAMPLES.items()}
).map(lambda members: SettingsChange(**members))
tokens = st.builds(
    access_token,
    name=st.sampled_from("tu"),
    digest=st.uuids().map(str),
    scopes=st.sampled_from(((), (Scope.PRODUCE, Scope.ADMIN))),
    queues=st.just("a*"),
    created_at=st.just(1),
    expires_at=st.sampled_from((None, 2)),
)
sessions = st.builds(
    UiSession,
    digest=st.sampled_from("stuv"),
    key_name=st.sampled_from((None, "t")),
    key_digest=st.just("digest"),
    created_at=st.just(1),
    expires_at=st.sampled_from((1, 2**50)),
    last_used_at=st.integers(1, 3),
    client=st.just("::1"),
    agent=st.just("größe"),
)
tasks = st.builds(
    redrive_task,
    id=st.sampled_from("xyz"),
    queue=st.just("a-dlq"),
    text=maybe("ö"),
    total=st.just(3),
    state=st.sampled_from(get_args(RedriveState)),
    walker=st.sampled_from(("", "w")),
    walked_at=st.sampled_from((0, 2**50)),
)
steps = st.one_of(
    st.none(),
    st.builds(
        RedriveStep,
        st.sampled_from("xyz"),
        st.integers(1, 9),
        st.integers(0, 9),
        st.integers(0, 9),
        st.integers(0, 9),
        st.sampled_from(("", "w")),
    ),
)
settling = st.one_of(
    st.builds(Ack, queues, stand_in_receipts.map(tuple), claims=kinds_of_claims),
    st.builds(
        Ack, st.none(), stand_in_receipts.map(tuple), claims=st.sampled_from((Claims.CURRENT, Claims.LEASED))
    ),
    st.builds(Ack, queues, stand_in_receipts.map(lambda some: tuple(some[:1])), stand_in_ids),
    st.builds(
        AckWithResult,
        st.one_of(queues, st.none()),
        stand_in_receipts.map(tuple),
        st.sampled_from(("", "größe")),
        st.sampled_from((1, 5_000, 90_000)),
    ),
    st.builds(AckById, queues, stand_in_ids, maybe(0, 1, 5)),
    st.builds(
        Nack,
        queues,
        stand_in_receipts.map(tuple),
        maybe(0, 1, 1_000, 70_000),
        maybe("", "broke"),
        final=st.sampled_from((False, False, False, True)),
        max_attempts=maybe(1, 3, 9),
    ),
    st.builds(NackById, queues, stand_in_ids, maybe(0, 1, 5)),
    st.builds(DiscardMessages, queues, stand_in_receipts.map(tuple), st.sampled_from(("no use", "broke"))),
    st.builds(Extend, st.none(), stand_in_receipts.map(tuple), leases_ms),
    st.builds(Extend, queues, stand_in_receipts.map(tuple), leases_ms, kinds_of_claims),
    st.builds(Release, queues, stand_in_receipts.map(tuple), delays_ms),
)
known_only = st.sampled_from((False, False, True))
sending = st.one_of(
    st.builds(Produce, sent_to, messages, known_only),
    st.builds(ProduceMany, sent_to, st.lists(messages, min_size=1, max_size=5).map(tuple), known_only),
    st.builds(
        ProduceEach,
        st.lists(st.tuples(queues, messages), min_size=1, max_size=4).map(tuple),
        st.sampled_from((None, None, 3)),
    ),
    st.builds(TakeSetAside, st.lists(st.integers(0, 3), max_size=3).map(tuple), st.booleans()),
    st.builds(
        lambda outbox, after, some, key: RelayMessages(
            outbox, after, tuple(RelayedMessage(after + 1 + i, *each) for i, each in enumerate(some)), key
        ),
        st.sampled_from("mn"),
        st.integers(0, 3),
        st.lists(st.tuples(sent_to, messages), max_size=4),
        keys,
    ),
)
message_keys = st.sampled_from("kkl")
kinds = st.sampled_from(("", "", "é"))
offerings = st.builds(
    Offering,
    key=message_keys,
    kind=kinds,
    content=st.sampled_from(CONTENTS),
    mode=st.sampled_from(get_args(Mode)),
    process_after=maybe(-5_000, 0, 1_000),
    delay_ms=maybe(0, 1, 1_000, 30_000),
    max_wait_ms=maybe(1, 1_500, 40_000),
    priority=st.sampled_from((100, 100, 100, 1_000)),
    ttl_ms=maybe(1, 30_000),
    attributes=st.one_of(st.none(), st.none(), some_attributes),
    group=st.sampled_from((None, None, None, "g", "h")),
    max_attempts=maybe(1, 2),
    dead_letter_queue=maybe("", "x"),
).map(valid)
revisions = st.integers(0, 9)
offering_keys = st.one_of(
    st.builds(OfferMany, sent_to, st.lists(offerings, min_size=1, max_size=4).map(tuple)),
    st.builds(OfferMany, sent_to, st.lists(offerings, min_size=1, max_size=4).map(tuple)),
    st.one_of(
        st.builds(RescheduleKey, queues, message_keys, kinds, st.sampled_from((-5, 0, 9_000)), st.booleans()),
        st.builds(AckRevision, queues, message_keys, kinds, revisions),
        st.builds(DropKey, queues, message_keys, kinds, st.booleans()),
        st.builds(DropKeys, queues, kinds, maybe(5, 20)),
    ),
)
administering = st.one_of(
    st.builds(Configure, queues, st.one_of(st.none(), changes, changes, changes)),
    st.builds(NameQueues, st.lists(queues, max_size=3).map(tuple), st.sampled_from(("token", "other"))),
    st.builds(Pause, queues, st.sampled_from((False, False, True))),
    st.builds(Purge, queues, st.sampled_from((5, 10, 20, 1_000))),
    st.builds(ForgetQueue, queues, st.sampled_from((0, 0, 2, 1_000))),
    st.builds(BindTable, queues, maybe(QueueTable("pgq", "t"), QueueTable("pgq", "u"))),
    st.builds(PurgeHistory, queues, maybe(3, 10)),
    st.builds(TrimHistory, st.sampled_from((-60_000, -1_000)), st.sampled_from((20, 1_000))),
    st.builds(Redrive, queues, some_ids, maybe("a", "b", "c_lifo", "a-dlq"), steps),
    st.builds(Delete, queues, some_ids, steps),
    *[st.builds(kind, queues, stand_in_ids) for kind in BY_ID],
    st.builds(
        Resubmit, queues, stand_in_ids, maybe("edited"), maybe({}, {"k": "w"}), maybe("a", "b"), st.booleans()
    ),
    st.builds(SaveToken, tokens),
    st.builds(RevokeToken, st.sampled_from("tu")),
    st.builds(SaveSession, sessions),
    st.builds(EndSessions, st.sampled_from((None, ("s",), ("t", "t", "s"), ()))),
    st.builds(NoteSessionUse, st.dictionaries(st.sampled_from("stu"), st.integers(1, 4))),
    st.builds(SaveRedrive, tasks),
    st.builds(
        ChangeRedrive,
        st.sampled_from("xyz"),
        st.sampled_from(get_args(RedriveState)),
        maybe("why"),
        st.sampled_from(("", "w")),
        steps,
    ),
    st.builds(ForgetRedrive, st.sampled_from("xyz")),
    st.builds(TrimEvents, st.sampled_from((0, 1_000, 30_000)), st.sampled_from((0, 10**9, 10**9))),
    st.builds(NoteTokenUse, st.dictionaries(st.sampled_from("tuv"), st.integers(1, 3))),
)
parts = st.lists(messages, max_size=3).map(
    lambda some: StagedPart(
        msgspec.msgpack.encode(
            [msgspec.structs.replace(each, process_after=None, default_max_receives=None) for each in some]
        ),
        len(some),
        sum(message_bytes(each.content, each.attributes) for each in some),
    )
)
stage_names = st.sampled_from("st")
publishing = st.one_of(
    *[
        st.builds(
            StagePage,
            sent_to,
            stage_names,
            st.integers(0, 1),
            st.lists(parts, min_size=1, max_size=3).map(tuple),
            keys,
        )
    ]
    * 3,
    *[
        st.builds(
            Publish,
            st.sampled_from("mno"),
            st.integers(1, 9),
            st.lists(st.builds(Stage, sent_to, stage_names, st.integers(1, 2)), min_size=1, max_size=2).map(
                tuple
            ),
            st.booleans(),
            keys,
        )
    ]
    * 2,
    st.builds(ForgetApp, st.sampled_from("mno"), keys),
    st.builds(DiscardStage, sent_to, stage_names),
    st.just(EndStages()),
)
consumed = st.sampled_from(("a", "a", "b", "c_lifo"))
numbers = st.integers(1, 4)
consuming = st.one_of(
    st.builds(OpenConsumer, consumed, st.just("k"), maybe(5_000, 60_000), keys),
    st.builds(
        LeaseMessages,
        consumed,
        st.just("k"),
        st.integers(1, 3),
        numbers,
        st.integers(1, 6),
        st.sampled_from((1, 400, 10_000)),
        st.booleans(),
    ),
    st.builds(
        SettleLease,
        consumed,
        st.just("k"),
        st.sampled_from((None, None, 1, 2)),
        numbers,
        st.sampled_from((Settling.ACKNOWLEDGE, *Settling)),
        st.sampled_from((None, None, 1)),
    ),
    st.one_of(
        st.builds(DropPages, consumed, st.just("k")),
        st.builds(MoveBack, consumed, st.integers(0, 9), st.integers(1, 30)),
        st.builds(ForgetConsumer, consumed, st.just("k"), st.sampled_from((None, None, 1, 2))),
        st.builds(NoteConsumerUse, consumed, st.just("k")),
    ),
)
schedule_names = st.sampled_from("efgh")
schedules = st.builds(
    lambda timing, **members: NewSchedule(**timing, **members),
    st.sampled_from(
        (
            *({"every": "4s"}, {"every": "20s", "jitter": "9s"}, {"cron": "*/7 * * * * *"}),
            {"cron": "*/20 14,15 23 * * *", "time_zone": "Europe/Paris"},
        )
    ),
    queue=sent_to,
    content=st.sampled_from(CONTENTS),
    group=maybe("g"),
    dead_letter_queue=maybe("x"),
    missed=st.sampled_from(("skip", "last", "all")),
    while_pending=st.sampled_from(("send", "send", "skip")),
    paused=maybe(False, True),
)
makers = maybe("token", "other")
scheduling = st.one_of(
    *[st.builds(SaveSchedule, schedule_names, schedules, st.booleans(), makers)] * 4,
    st.builds(PauseSchedule, schedule_names, st.booleans(), makers),
    st.builds(DeleteSchedule, schedule_names),
    st.builds(RunSchedule, schedule_names),
)
batch_ids = st.sampled_from("pqr")
sent_by_batches = st.one_of(
    st.none(),
    st.builds(
        lambda queue, content, group, own: AddressedMessage(
            queue, NewMessage(content, group=group, dead_letter_queue=own)
        ),
        sent_to,
        st.sampled_from(CONTENTS),
        maybe("g"),
        maybe("x"),
    ),
)
batching = st.one_of(
    *[
        st.builds(
            lambda id, by, **members: OpenMessageBatch(id, NewMessageBatch(**members), by),
            batch_ids,
            makers,
            then=sent_by_batches,
            on_dead=sent_by_batches,
            needs=st.sampled_from(("ended", "done")),
            expires_ms=st.sampled_from((1_000, 30_000, 30_000, 600_000)),
            outer=maybe("p", "q", "r"),
        )
    ]
    * 2,
    *[
        st.builds(
            AddToMessageBatch,
            batch_ids,
            st.lists(st.builds(AddressedMessage, sent_to, messages), min_size=1, max_size=3).map(tuple),
        )
    ]
    * 3,
    st.builds(CloseMessageBatch, batch_ids, st.sampled_from((False, False, False, True)), makers),
    st.builds(ShowMessageBatches, maybe("p", "q"), st.sampled_from((20, 2**40)), st.integers(1, 2), makers),
)
commands = st.one_of(
    batching,
    scheduling,
    publishing,
    sending,
    sending,
    offering_keys,
    offering_keys,
    claims,
    claims,
    settling,
    settling,
    administering,
    consuming,
    st.builds(Sweep, st.sampled_from(SweepKind)),
    st.sampled_from((Optimize(), Ping(), Compact(4))),
)


def with_more(batch: list[Any], more: Sequence[tuple[int, str | None]]) -> list[Any]:
    """A batch with some of its commands once more, also for other queues: engines read for alike ones at once."""
    again = [(batch[place % len(batch)], queue) for place, queue in more if batch]
    return batch + [
        msgspec.structs.replace(each, queue=queue) if queue and has_queue(each) else each
        for each, queue in again
    ]


def has_queue(command: Any) -> bool:
    return isinstance(getattr(command, "queue", None), str)


batches = st.builds(
    with_more,
    st.lists(commands, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), queues)), max_size=4),
)
