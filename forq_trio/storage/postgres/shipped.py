"""What one process's batch changed of the cache, as another process takes it over.

Every batch stores its changes beside what it did. The next batch of another process first adopts them, in order, as if
it had run those batches itself: so the caches of all processes are the same, also in what no table has (the rounds of
groups, freed groups, queues that the next batch wakes, how far claims by attributes have looked).
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model.access import AccessToken, Digest
from forq_trio.model.consumers import Consumer, ConsumerTotals
from forq_trio.model.logs import Log
from forq_trio.model.messages import QueueCounts
from forq_trio.model.publishing import Staging
from forq_trio.model.queue_settings import QueueSettings
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.schedules import ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.model.where import Where
from forq_trio.storage.engine import SetAside
from forq_trio.storage.relational.cache import Cache, Group, QueueHistory, Round
from forq_trio.storage.relational.heads import Head, HeadChange, Heads
from forq_trio.storage.relational.row import Place
from forq_trio.storage.relational.scans import Scan
from forq_trio.storage.relational.transaction import Transaction

StoredBatch = tuple[int | None, str, bytes | None]
"""Version, who made it, and its changes, if they were asked for; without a version: messages were sent meanwhile."""


class Shipped(Struct, frozen=True, array_like=True):
    """The members of a Transaction that its `adopt` reads, and which queues were woken or have new events.

    Processes of other versions read it and write it: a new member comes last, with a default; none is ever removed.
    """

    now_ms: int
    last_seq: int
    staging: Staging
    schedules: ScheduleTotals
    consumer_totals: ConsumerTotals
    event_log: Log
    history_log: Log
    next_due_ms: int | None
    due_from_ms: int
    heads: dict[str, HeadChange | None]
    due_settled: bool
    has_buckets: bool
    claim_first_next: str
    counts: dict[str, QueueCounts]
    woken: Sequence[str]
    least: dict[str, Place] = {}
    logged: Sequence[str] = ()
    history: dict[str, QueueHistory | None] = {}
    forgotten: Sequence[str] = ()
    makers: dict[str, str] = {}
    grouped: Sequence[str] = ()
    unhold_cursors: dict[str, int | None] = {}
    wake_next: Sequence[str] = ()
    scans: Sequence[tuple[str, list[tuple[Where, Scan]]]] = ()
    rates_full_at: dict[str, int] = {}
    groups_taken: Sequence[Group] = ()
    groups_left: Sequence[Group] = ()
    freed: Sequence[Group] = ()
    rounds: Sequence[tuple[Round, int]] = ()
    settings: dict[str, QueueSettings | None] = {}
    set_aside: Sequence[SetAside] = ()
    tokens: dict[str, AccessToken | None] = {}
    sessions: dict[str, UiSession | None] = {}
    redrives: dict[str, RedriveTask | None] = {}
    consumers: dict[str, Consumer | None] = {}
    maker_turn: str = ""
    looked: dict[str, int] = {}


def _encoded(value: Any) -> Any:
    if isinstance(value, Digest):
        return value.hex
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(type(value))


def _decoded(kind: type, value: Any) -> Any:
    if kind is Digest:
        return Digest(value)
    raise TypeError(kind)


_encode = msgspec.msgpack.Encoder(enc_hook=_encoded).encode
_decode = msgspec.msgpack.Decoder(Shipped, dec_hook=_decoded).decode


def pack(tx: Transaction, *, whole: bool = False) -> bytes:
    """What a batch changed, once it has run. whole: with all of the heads that it changed."""
    assert tx.heads is not None
    return _encode(
        Shipped(
            tx.now_ms,
            tx.last_seq,
            tx.staging,
            tx.schedules,
            tx.consumer_totals,
            tx.event_log,
            tx.history.log,
            tx.next_due_ms,
            tx.due_from(),
            tx.heads.ship(whole=whole),
            tx.due_settled,
            tx.has_buckets,
            tx.claim_first_next,
            tx._counts,
            list(tx.woken),
            tx.heads.least,
            list(tx.logged()),
            tx.history.changed,
            list(tx._forgotten),
            tx._makers,
            list(tx._grouped),
            tx._unhold_cursors,
            list(tx.wake_next),
            [(queue, list(scans.items())) for queue, scans in tx.scans._changed.items()],
            tx.rates_full_at,
            list(tx._groups_taken),
            list(tx._groups_left),
            sorted(tx.freed),
            list(tx.rounds.items()),
            tx._settings,
            tx.set_aside,
            tx.tokens.changed,
            tx.sessions.changed,
            tx.redrives.changed,
            tx.consumers.changed,
            tx.maker_turn,
            tx.looked,
        )
    )


def unpack(changes: bytes) -> Shipped:
    """Raises msgspec.MsgspecError for what another version wrote."""
    return _decode(changes)


def heads_after(batches: Sequence[StoredBatch]) -> dict[str, Head]:
    """The heads as these batches left them: one that was shipped whole, with what was shipped later."""
    heads: dict[str, Head] = {}
    for number, _, changes in batches:
        if number is None:
            break
        if changes is None:
            continue
        try:
            shipped = unpack(changes)
        except msgspec.MsgspecError:
            heads = {}
            continue
        taken = Heads(heads)
        taken.take_over(shipped.heads, shipped.least)
        taken.adopt()
    return heads


def take_left(batches: Sequence[StoredBatch], last: int, known: Cache) -> None:
    """Take what the last of these batches left that no table has: the queues that count as woken in the next one, the
    queue with which claims begin, and the last entry of a stage. Of one that cannot be read: all queues with ready
    messages count as woken."""
    known.wake_next, known.claim_first = set(), ""
    for number, _, changes in batches:
        if number == last and changes is not None:
            try:
                shipped = unpack(changes)
            except msgspec.MsgspecError:
                known.wake_next = {queue for queue, counts in known.counts.items() if counts.ready}
                return
            known.wake_next, known.claim_first = set(shipped.wake_next), shipped.claim_first_next
            last_entry = max(known.staging.last_entry, shipped.staging.last_entry)
            known.staging = replace(known.staging, last_entry=last_entry)


def take_over(tx: Transaction, shipped: Shipped) -> None:
    """Give a new Transaction the changes of another process's batch, and adopt them."""
    tx.last_seq = shipped.last_seq
    tx.staging = shipped.staging
    tx.schedules = shipped.schedules
    tx.consumer_totals = shipped.consumer_totals
    tx.event_log = shipped.event_log._replace(
        enabled=tx.event_log.enabled
    )  # each process has its own setting
    tx.history.log = shipped.history_log._replace(enabled=tx.history.log.enabled)
    tx.history.changed = shipped.history
    tx.next_due_ms = shipped.next_due_ms
    tx.due_from_ms = shipped.due_from_ms
    assert tx.heads is not None
    tx.heads.take_over(shipped.heads, shipped.least)
    tx.due_settled = shipped.due_settled
    tx.has_buckets = shipped.has_buckets
    tx.claim_first_next = shipped.claim_first_next
    tx._counts = shipped.counts
    tx._forgotten = set(shipped.forgotten)
    tx._makers = shipped.makers
    tx._grouped = set(shipped.grouped)
    tx._unhold_cursors = shipped.unhold_cursors
    tx.wake_next = set(shipped.wake_next)
    tx.scans._changed = {queue: dict(scans) for queue, scans in shipped.scans}
    tx.rates_full_at = shipped.rates_full_at
    tx._groups_taken = dict.fromkeys(shipped.groups_taken)
    tx._groups_left = dict.fromkeys(shipped.groups_left)
    tx.freed = set(shipped.freed)
    tx.rounds = dict(shipped.rounds)
    tx._settings = shipped.settings
    tx.set_aside = list(shipped.set_aside)
    tx.tokens.changed = shipped.tokens
    tx.sessions.changed = shipped.sessions
    tx.redrives.changed = shipped.redrives
    tx.consumers.changed = shipped.consumers
    tx.maker_turn = shipped.maker_turn
    tx.looked = shipped.looked
    tx.adopt()
