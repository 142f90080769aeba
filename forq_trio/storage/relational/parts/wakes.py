"""The queues that have something new for parked receivers, in this batch and in the next.

The claims of a batch may leave work for the next one, which `next_due_ms` asks for at once. In that batch these queues
count as woken: queues with ready messages whose claims an allowance cut short; queues to which a claim moved messages;
queues that still have ready messages after all RECEIVERS_OFFERED_MAX receivers of the batch were served.
"""

from collections.abc import Set
from typing import Any

from forq_trio.storage.relational.parts.part import Part

Shipped = tuple[list[str], str, list[str]]
"""`next`, `claim_first_next`, and `woken`."""


class QueueWakes(Part):
    """Queues that were resumed or in which messages became ready, and the queue with which claims begin."""

    shipped = Shipped

    def __init__(self) -> None:
        self.committed_next: set[str] = set()  # `next` of the last batch
        self.woken: set[str] = set()  # by this batch, or by the last one for this one
        self.elsewhere: Set[str] = frozenset()  # by other processes
        self.next: set[str] = set()  # queues that the next batch counts as woken
        self.claim_first = ""  # claims begin with this queue (allowance.py); "": with the first by name
        self.claim_first_next = ""  # the same in the next batch

    def copy(self) -> Any:
        return self.woken.copy(), self.next.copy(), self.claim_first_next

    def restore(self, copied: Any) -> None:
        self.woken, self.next, self.claim_first_next = copied

    def adopt(self) -> None:
        self.committed_next, self.claim_first = self.next, self.claim_first_next
        self.discard()

    def discard(self) -> None:
        self.woken = set(self.committed_next)
        self.next, self.claim_first_next = set(), ""

    def ship(self) -> Shipped | None:
        if not (self.next or self.claim_first_next or self.woken or self.claim_first or self.committed_next):
            return None
        return list(self.next), self.claim_first_next, list(self.woken)

    def take_over(self, shipped: Shipped) -> None:
        following, self.claim_first_next, woken = shipped
        self.next, self.woken = set(following), set(woken)
