"""The life of a message as a table: which change leads from which status to which.

Each engine notes every change of a message in one function, `Transaction.transition`, which refuses a change that is
not in this table. A change is named by its event (`engine.EVENT_KINDS`), or by one of the names below if it has none.

    (sent) -> ready, delayed          delayed -> ready                       it is due
    ready -> processing               a consumer claims it
    processing -> (gone)              the consumer acknowledges it
    processing -> ready, delayed      the consumer gives it back, or its lease ends
    processing -> failed              that was its last attempt; most go on at once, in the same batch
    ready <-> held                    its group reaches the group limit, or is below it again
    any -> ready, delayed             a changed offer of its key (of one in process: its receipt ends)
    any -> ready elsewhere            moved to, or out of, a dead-letter queue
    any -> (gone)                     expired, evicted, purged, deleted, dropped, acknowledged by its revision,
                                      discarded by its consumer, cancelled

The receipt of a lease that ended stays current until the next claim, so a consumer can settle a message that is ready
or held again, too.
"""

from collections.abc import Iterable
from itertools import product

from forq_trio.model.messages.types import Status
from forq_trio.storage.engine import (
    ACKED,
    CLEANED_UP,
    CONSUMED,
    MOVED_TO_DLQ,
    NACKED,
    PRODUCED,
    RELEASED,
    REQUEUED,
    STALE_RECOVERED,
)

PROMOTED = "promoted"
EXTENDED = "extended"
SHORTENED = "shortened"
"""A consumer ended its own lease."""
HELD_BACK = "held_back"
UNHELD = "unheld"
UPDATED = "updated"
"""An offer, or a new due time, changed a message with a key."""

READY, PROCESSING, FAILED, DELAYED, HELD = map(int, Status)
"""Plain numbers, because members of an enumeration take longer to bind, compare and hash."""
_STORED = tuple(map(int, Status))
_HAS_RECEIPT = (PROCESSING, READY, HELD)
"""In which a message may have a current receipt."""


def _between(
    change: str, sources: Iterable[int | None], *targets: int | None
) -> set[tuple[str, int | None, int | None]]:
    return {(change, source, target) for source, target in product(sources, targets)}


TRANSITIONS = frozenset(
    _between(PRODUCED, [None], READY, DELAYED)
    | _between(PROMOTED, [DELAYED], READY)
    | _between(CONSUMED, [READY], PROCESSING)
    | _between(HELD_BACK, [READY], HELD)
    | _between(UNHELD, [HELD], READY)
    | _between(EXTENDED, _HAS_RECEIPT, PROCESSING)
    | _between(SHORTENED, _HAS_RECEIPT, READY, FAILED)
    | _between(UPDATED, _STORED, READY, DELAYED)
    | _between(ACKED, _STORED, None)
    | _between(NACKED, _HAS_RECEIPT, READY, DELAYED, FAILED)
    | _between(RELEASED, _HAS_RECEIPT, READY, DELAYED)
    | _between(STALE_RECOVERED, [PROCESSING], READY, FAILED)
    | _between(MOVED_TO_DLQ, _STORED, READY)
    | _between(REQUEUED, set(_STORED) - {PROCESSING}, READY)
    | _between(CLEANED_UP, _STORED, None)
)
"""(change, status before, status after); None for a message that is not stored yet, or deleted."""


def frees_group(source: int | None, target: int | None, *, moved: bool) -> bool:
    """True if a change may bring a group below its limit: the message was ready or processing and no longer is.

    A claim only leads from one to the other, so it frees nothing. A delayed message for which others wait frees them if
    it goes; if it becomes ready, its own delivery does. moved: the message goes to another queue or group, or may go to
    another place in the claim order.
    """
    if source == DELAYED:
        return moved or target is None
    if source not in (READY, PROCESSING):
        return False
    return moved or target not in (source, PROCESSING, HELD)
