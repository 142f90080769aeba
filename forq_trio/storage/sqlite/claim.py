"""Claims: per queue, one SELECT along the claim index for all receivers of the batch, parked ones first.

Splitting the claim into a SELECT and an UPDATE by key is safe because nobody else writes, and costs half of one
UPDATE ... RETURNING, which builds two temporary tables.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from random import getrandbits

from forq_trio.commands import Claim
from forq_trio.model import Delivery, Status, receipt_text
from forq_trio.storage.engine import CONSUMED
from forq_trio.storage.rules import share, slices
from forq_trio.storage.sqlite.transaction import Transaction

Deliveries = tuple[Delivery, ...]

_TOKEN_BITS = 62


def claim(
    tx: Transaction, claims: Sequence[Claim], parked: Mapping[str, Sequence[Claim]]
) -> tuple[list[Deliveries], dict[str, list[tuple[int, Deliveries]]]]:
    """Serve parked receivers of queues where something became ready, then the batch's own claims."""
    outcomes: list[Deliveries] = [()] * len(claims)
    served: dict[str, list[tuple[int, Deliveries]]] = {}
    own: dict[str, list[int]] = {}
    for index, command in enumerate(claims):
        own.setdefault(command.queue, []).append(index)
    queues = dict.fromkeys(own)
    if parked:
        queues.update(dict.fromkeys(queue for queue in sorted(tx.woken) if queue in parked))
    for queue in queues:
        ready = tx.ready(queue)
        if ready <= 0:
            continue
        waiting = parked[queue][:ready] if queue in parked else []
        mine = own.get(queue, [])
        shares = _claim_queue(tx, queue, [*waiting, *(claims[index] for index in mine)], ready)
        for position, deliveries in enumerate(shares[: len(waiting)]):
            if deliveries:
                served.setdefault(queue, []).append((position, deliveries))
        for index, deliveries in zip(mine, shares[len(waiting) :], strict=True):
            outcomes[index] = deliveries
    return outcomes, served


def _claim_queue(tx: Transaction, queue: str, claims: Sequence[Claim], ready: int) -> list[Deliveries]:
    """Lease messages of one queue to these claims, in their order."""
    sizes = share(ready, [command.max_messages for command in claims])
    results: list[Deliveries] = []
    start = 0
    for lease_ms, group in groupby(claims, key=lambda command: command.lease_ms):
        stop = start + len(list(group))
        deliveries = _lease(tx, queue, sum(sizes[start:stop]), lease_ms)
        results += [tuple(part) for part in slices(deliveries, sizes[start:stop])]
        start = stop
    return results


def _lease(tx: Transaction, queue: str, count: int, lease_ms: int) -> list[Delivery]:
    """Lease the next `count` messages of a queue."""
    if count == 0:
        return []
    now_ms = tx.now_ms
    lease_until = now_ms + lease_ms
    deliveries = []
    leases = []
    for seq, message_id, content, attempts, received_at in tx.query("select_ready", queue, count):
        token = getrandbits(_TOKEN_BITS)
        attempts += 1
        leases.append((attempts, now_ms, now_ms, lease_until, token, seq))
        receipt = receipt_text(seq, token)
        deliveries.append(Delivery(message_id, content, receipt, attempts, seq, received_at, lease_until))
    tx.run("lease", leases)
    tx.add(queue, Status.READY, -len(leases))
    tx.add(queue, Status.PROCESSING, len(leases))
    tx.note(CONSUMED, queue, len(leases))
    tx.due(lease_until)
    return deliveries
