"""What the checker holds the application to, and how it says that a promise was broken."""

from enum import Enum


class Clause(Enum):
    """LOST: a message went without a stated rule, or an answered send was never stored.
    DOUBLED: a message is stored twice, or one that was refused, withdrawn or deduplicated is stored.
    HOLDERS: a message was handed out, or changed, while somebody else held its lease.
    FENCE: a receipt worked that was not the current one, or the current one did not.
    ATTEMPTS: an attempt was counted that was none, was not counted, or was one too many.
    ORDER: a message was handed out before one that comes first.
    GROUP: a message of a strict group was handed out while another receiver had one of it, or an earlier one waited.
    EARLY: a message was handed out before it was due, from a paused queue, or beyond the bound of its group.
    LATE: something that was due had not happened when all was quiet, or a message was held for no reason.
    PARKED: a receiver was left waiting beside a message that was ready.
    KEPT: a message stayed leased although nobody had received it.
    COUNTS: a counter differs from the table, or an event from what happened.
    DURABLE: what was committed was not there after a restart, or what was not, was.
    HUNG: a call did not end within its bound.
    CRASHED: an error that nobody foresaw.
    ANSWER: a client was told something else than what happened."""

    LOST = "lost"
    DOUBLED = "doubled"
    HOLDERS = "holders"
    FENCE = "fence"
    ATTEMPTS = "attempts"
    ORDER = "order"
    GROUP = "group"
    EARLY = "early"
    LATE = "late"
    PARKED = "parked"
    KEPT = "kept"
    COUNTS = "counts"
    DURABLE = "durable"
    HUNG = "hung"
    CRASHED = "crashed"
    ANSWER = "answer"


class Violation(AssertionError):
    """A broken promise."""

    def __init__(self, clause: Clause, what: str) -> None:
        super().__init__(f"{clause.name}: {what}")
        self.clause = clause


def hold(clause: Clause, kept: object, what: str, *shown: object) -> None:
    """Raise Violation unless the promise was kept. what: a format string; only then is it filled in."""
    if not kept:
        raise Violation(clause, what.format(*shown))
