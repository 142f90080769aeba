"""The health of a queue: from facts to a verdict, its explanation and a remedy. Pure functions, no clock.

The table is `ROWS`: the first row that applies is the verdict. "Lately" is the last five minutes. Rows of the levels
broken and attention have to apply for a while before they are shown (health.py). docs/health.md has the table for
people, and a test compares the two.

Dead-letter queues are inspected by people, so a backlog without consumers is normal there; the verdict says whether
they grow. A queue that is also consumed is judged as a dead-letter queue.
"""

from collections.abc import Callable, Sequence
from math import ceil

from msgspec import Struct

from forq_trio.model import durations, limits
from forq_trio.model.queues.bodies import Level, QueueHealth, Remedy
from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.telemetry import words

OLD_MS = 60 * limits.SECOND_MS
NACKS_MIN = 10
SAME_REASON_SHARE = 0.95
NACKED_SHARE = 0.5
ENDED_MIN = 5
ENDED_SHARE = 0.01
FALLING_BEHIND = 1.2
IDLE_MS = limits.HOUR_MS
DRAINED_MS_MIN = limits.MINUTE_MS
DRAINED_MS_MAX = limits.DAY_MS


class Facts(Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a queue. Counts are of the last five minutes where nothing else is said.

    seconds: how long that was, less after a start. messages, bytes: what it holds. rejects: a full queue refuses sends.
    next_token_ms: in how many ms there is a token of the queue's own rate, 0 for now.
    oldest_ms: how long the oldest ready message could have been claimed; None without one. lost: messages deleted
    because their dead-letter queue was full. nacks: those of the latest minutes, reason: the most frequent of theirs,
    None without one, same_reason: how many gave it. ready_grew: by how many messages in ten minutes, ready_fell: in
    five; None where it was not watched for so long. grew: by how many messages in an hour. paused_ms: for how long,
    quiet_ms: since a message was last sent or delivered, unchanged_ms: since it last got more messages; None for longer
    than watched_ms, how long it has been watched. handling_p99_ms: from claim to ack, None if it is not known. workers:
    that are known; silent_workers: of them, held_by_silent: messages that these named; slots: of the others,
    slots_busy_ms: for how long all of these have been busy, None while one is free.
    """

    dead_letters: bool = False
    seconds: float = 300.0
    ready: int = 0
    in_flight: int = 0
    waiting: int = 0
    messages: int = 0
    bytes: int = 0
    max_messages: int | None = None
    max_bytes: int | None = None
    rejects: bool = True
    held: int = 0
    in_flight_max: int | None = None
    rate: Rate | None = None
    next_token_ms: int = 0
    paused: bool = False
    paused_ms: int | None = None
    oldest_ms: int | None = None
    sent: int = 0
    delivered: int = 0
    acked: int = 0
    ended: int = 0
    lost: int = 0
    refused: int = 0
    nacks: int = 0
    reason: str | None = None
    same_reason: int = 0
    ready_grew: int | None = None
    ready_fell: int | None = None
    grew: int = 0
    quiet_ms: int | None = None
    unchanged_ms: int | None = None
    watched_ms: int = 0
    lease_ms: int = limits.LEASE_MS_DEFAULT
    handling_p99_ms: float | None = None
    workers: int = 0
    silent_workers: int = 0
    held_by_silent: int = 0
    slots: int = 0
    slots_busy_ms: int | None = None

    @property
    def is_old(self) -> bool:
        """Whether the oldest ready message has waited for more than a minute."""
        return self.oldest_ms is not None and self.oldest_ms > OLD_MS

    @property
    def is_full(self) -> bool:
        return (self.max_messages is not None and self.messages >= self.max_messages) or (
            self.max_bytes is not None and self.bytes >= self.max_bytes
        )

    @property
    def drained_ms(self) -> float:
        """In how many ms the queue will be empty at the current rates; infinity for never."""
        out = self.acked - self.sent
        return self.ready * self.seconds * limits.SECOND_MS / out if out > 0 else float("inf")


class VerdictRow(Struct, frozen=True, gc=False):
    """A row of the table."""

    level: Level
    holds: Callable[[Facts], bool]
    says: Callable[[Facts], str]  # the verdict
    why: Callable[[Facts], str] = lambda _: ""  # its two sentences
    remedy: Remedy | None = None
    value: Callable[[Facts], int | None] = lambda _: None  # the remedy's


def judge(facts: Facts, rows: "Sequence[VerdictRow] | None" = None) -> QueueHealth:
    """The verdict of the first row that applies. rows: some rows of the table; None for all."""
    for row in ROWS if rows is None else rows:
        if row.holds(facts):
            return said(row, facts)
    raise AssertionError("the last row always holds")


def said(row: VerdictRow, facts: Facts) -> QueueHealth:
    """The verdict of a row about these facts."""
    return QueueHealth(row.level, row.says(facts), row.why(facts), row.remedy, row.value(facts))


def _is_full(f: Facts) -> bool:
    return f.rejects and f.is_full and f.refused > 0


def _has_no_consumers(f: Facts) -> bool:
    nobody = f.waiting == f.delivered == f.in_flight == 0
    return nobody and f.ready > 0 and f.is_old and not f.dead_letters and not f.paused


def _acks_nothing(f: Facts) -> bool:
    has_consumers = f.delivered > 0 or (f.waiting > 0 and f.in_flight > 0)
    return has_consumers and f.acked == 0 and f.is_old and not f.paused


def _nacks_alike(f: Facts) -> bool:
    alike = f.nacks >= NACKS_MIN and f.same_reason >= SAME_REASON_SHARE * f.nacks
    return alike and bool(f.reason) and f.nacks >= NACKED_SHARE * f.delivered


def _waits_for_rate(f: Facts) -> bool:
    if f.rate is None or f.paused:
        return False
    if f.rate.per is RatePer.GROUP:
        return f.held > 0 and f.ready == 0 and f.waiting > 0
    return f.ready > 0 and f.next_token_ms > 0


def _waits_for_settlements(f: Facts) -> bool:
    is_reached = f.in_flight_max is not None and f.in_flight >= f.in_flight_max
    return is_reached and f.ready > 0 and f.waiting > 0 and not f.paused


def _outlives_leases(f: Facts) -> bool:
    return f.ended >= ENDED_MIN and f.ended >= ENDED_SHARE * f.delivered


def _falls_behind(f: Facts) -> bool:
    grows = f.sent > FALLING_BEHIND * f.acked and f.ready_grew is not None and f.ready_grew > 0
    return grows and f.is_old and not f.paused


def _drains(f: Facts) -> bool:
    falls = f.ready_fell is not None and f.ready_fell > 0
    return falls and DRAINED_MS_MIN <= f.drained_ms < DRAINED_MS_MAX


def _is_idle(f: Facts) -> bool:
    quiet_ms = f.watched_ms if f.quiet_ms is None else f.quiet_ms
    return quiet_ms >= IDLE_MS and not f.dead_letters


def _has_no_free_slot(f: Facts) -> bool:
    is_full = f.slots > 0 and f.slots_busy_ms is not None and f.slots_busy_ms >= OLD_MS
    return is_full and f.is_old and not f.paused


def _lease_needed(f: Facts) -> int:
    """The lease to suggest, in ms and whole seconds: twice the 99th percentile, which is at least the current lease."""
    wanted = 2 * max(f.handling_p99_ms or 0, f.lease_ms)
    return min(ceil(wanted / limits.SECOND_MS) * limits.SECOND_MS, limits.LEASE_MS_MAX)


def _ago(ms: int | None, watched_ms: int) -> str:
    """How long ago; "more than" for times before the start."""
    return f"more than {durations.about(watched_ms)}" if ms is None else durations.about(ms)


def _lately(f: Facts) -> str:
    return f"In the last {durations.about(f.seconds * limits.SECOND_MS)}"


def _full_why(f: Facts) -> str:
    return (
        f"It holds {words.counted(f.messages, 'message')}, as much as it may, and {words.counted(f.refused, 'send')} "
        f"{'was' if f.refused == 1 else 'were'} refused. Senders get an error until messages are consumed."
    )


def _no_consumers_why(f: Facts) -> str:
    return (
        f"{words.counted(f.ready, 'message')} can be received, the oldest for {durations.in_words(f.oldest_ms or 0)}, "
        "and no consumer waits for one. Nothing of it is done until a consumer is there."
    )


def _acks_nothing_why(f: Facts) -> str:
    return (
        f"{_lately(f)} {words.counted(f.delivered, 'message')} {'was' if f.delivered == 1 else 'were'} delivered and "
        f"none acked; {words.count(f.in_flight)} {'is' if f.in_flight == 1 else 'are'} in flight. "
        "Consumers take messages and finish none of them."
    )


def _nacks_why(f: Facts) -> str:
    return (
        f"{words.count(f.same_reason)} of the latest {words.counted(f.nacks, 'nack')} gave this reason. "
        "Messages that fail at every attempt become dead letters."
    )


def _leases_why(f: Facts) -> str:
    p99 = (
        ""
        if f.handling_p99_ms is None
        else f", and acks take up to {durations.in_words(f.handling_p99_ms)} (p99)"
    )
    return (
        f"{_lately(f)} {words.counted(f.ended, 'lease')} of {durations.in_words(f.lease_ms)} ended before the "
        f"ack{p99}. Their messages were delivered again, so work may be done twice."
    )


def _rate_says(f: Facts) -> str:
    behind = "" if f.oldest_ms is None or f.held else f", {durations.in_words(f.oldest_ms)} behind"
    return f"Held back by its rate{behind}"


def _rate_why(f: Facts) -> str:
    assert f.rate is not None
    many = f.held if f.rate.per is RatePer.GROUP else f.ready
    rate = f"{words.count(f.rate.count)} in {durations.in_words(f.rate.period_ms)}"
    return (
        f"{words.counted(many, 'message')} {'waits' if many == 1 else 'wait'}: {rate} may be delivered"
        f"{' of each group' if f.rate.per is RatePer.GROUP else ''}, "
        f"{words.rounded_rate(f.sent / f.seconds)} a second are sent. The rate is the bound, not the consumers."
    )


def _settlements_why(f: Facts) -> str:
    return (
        f"{words.counted(f.ready, 'message')} {'waits' if f.ready == 1 else 'wait'} until one that is in flight is "
        "settled. Consumers wait for them, the limit is the bound."
    )


def _slots_why(f: Facts) -> str:
    answering = f.workers - f.silent_workers
    return (
        f"{words.counted(answering, 'worker')} {'serves' if answering == 1 else 'serve'} it, and the oldest message "
        f"has waited for {durations.in_words(f.oldest_ms or 0)}. "
        "Messages wait longer and longer until there are more workers or slots."
    )


def _silent_why(f: Facts) -> str:
    one = f.silent_workers == 1
    return (
        f"Nothing was heard of {'it' if one else 'them'} for {limits.WORKER_SILENT_MS // limits.SECOND_MS} s or more. "
        f"Others get the {words.counted(f.held_by_silent, 'message')} that {'it holds' if one else 'they hold'} "
        "when the leases end."
    )


def _behind_why(f: Facts) -> str:
    return (
        f"{_lately(f)} {words.counted(f.sent, 'message')} {'was' if f.sent == 1 else 'were'} sent and "
        f"{words.count(f.acked)} acked; the oldest has waited for {durations.in_words(f.oldest_ms or 0)}. "
        "Messages wait longer and longer until there are more consumers."
    )


def _grew_why(f: Facts) -> str:
    return (
        f"It holds {words.counted(f.messages, 'message')} now. "
        "Messages fail or expire in the queues whose dead letters come here."
    )


def _lost_why(f: Facts) -> str:
    return (
        f"{_lately(f)} {words.counted(f.lost, 'message')} that failed or expired "
        f"{'was' if f.lost == 1 else 'were'} deleted, because the dead-letter queue holds as much as it may. "
        "They cannot be had back."
    )


def _paused_says(f: Facts) -> str:
    return "Paused" if f.paused_ms is None else f"Paused {durations.about(f.paused_ms)} ago"


def _paused_why(f: Facts) -> str:
    return (
        f"{words.counted(f.ready, 'message')} can be received once it is resumed. "
        "It takes messages and delivers none."
    )


def _unchanged_says(f: Facts) -> str:
    if f.unchanged_ms is None and f.watched_ms < IDLE_MS:
        return "Nothing new since the start"
    if f.unchanged_ms is not None and f.unchanged_ms < limits.MINUTE_MS:
        return "New in the last minute"
    return f"Nothing new for {_ago(f.unchanged_ms, f.watched_ms)}"


def _behind_says(f: Facts) -> str:
    return f"Falling behind, {words.rounded_rate((f.sent - f.acked) / f.seconds)} /s more in than out"


ROWS: Sequence[VerdictRow] = (
    VerdictRow("broken", _is_full, lambda _: "Full, sends are refused", _full_why, "change_limit"),
    VerdictRow("paused", lambda f: f.paused, _paused_says, _paused_why, "resume"),
    VerdictRow(
        "broken", _has_no_consumers, lambda _: "Backlog and no consumers", _no_consumers_why, "show_oldest"
    ),
    VerdictRow(
        "broken", _acks_nothing, lambda _: "Consumers but nothing acked", _acks_nothing_why, "show_in_flight"
    ),
    VerdictRow(
        "attention",
        _has_no_free_slot,
        lambda f: f"All {words.counted(f.slots, 'slot')} busy for {durations.about(f.slots_busy_ms or 0)}",
        _slots_why,
        "show_workers",
    ),
    VerdictRow("attention", _nacks_alike, lambda f: f"All nacks say “{f.reason}”", _nacks_why, "show_failed"),
    VerdictRow(
        "attention",
        _outlives_leases,
        lambda _: "Acks slower than the lease",
        _leases_why,
        "set_lease",
        _lease_needed,
    ),
    VerdictRow(
        "attention",
        lambda f: f.silent_workers > 0,
        lambda f: (
            f"{words.count(f.silent_workers)} of {words.counted(f.workers, 'worker')} "
            f"{'is' if f.silent_workers == 1 else 'are'} silent"
        ),
        _silent_why,
        "show_workers",
    ),
    VerdictRow("paused", _waits_for_rate, _rate_says, _rate_why, "change_rate"),
    VerdictRow(
        "paused",
        _waits_for_settlements,
        lambda f: f"{words.count(f.in_flight)} in flight, as many as may be",
        _settlements_why,
        "change_in_flight",
    ),
    VerdictRow("attention", _falls_behind, _behind_says, _behind_why, "show_consumers"),
    VerdictRow(
        "attention",
        lambda f: f.dead_letters and f.grew > 0,
        lambda f: f"{words.count(f.grew)} more in the last hour",
        _grew_why,
        "open_workbench",
    ),
    VerdictRow(
        "attention",
        lambda f: f.lost > 0,
        lambda _: "Dead letters are lost, their queue is full",
        _lost_why,
        "change_limit",
    ),
    VerdictRow("fine", _drains, lambda f: f"Draining, empty in about {durations.about(f.drained_ms)}"),
    VerdictRow("fine", _is_idle, lambda f: f"Idle, last message {_ago(f.quiet_ms, f.watched_ms)} ago"),
    VerdictRow("fine", lambda f: f.dead_letters, _unchanged_says),
    VerdictRow("fine", lambda _: True, lambda _: "Healthy"),
)
"""The rows of the table; the first that applies is the verdict."""

HEALTHY = QueueHealth("fine", "Healthy")
