"""The first read of a batch: it is sent with the statements that begin the batch, so it costs no wait of its own."""

from collections.abc import Sequence
from typing import Any

from forq_trio.model.commands import Claim
from forq_trio.storage.engine import Batch
from forq_trio.storage.relational.operations.claim import first_ready
from forq_trio.storage.relational.operations.settle import named_by
from forq_trio.storage.relational.transaction import Transaction


def first_read(tx: Transaction, batch: Batch, settlements: Sequence[Any]) -> tuple[Any, ...]:
    """The statement and bindings with which a batch will read its first messages; an empty tuple if that is unknown.

    A batch with settlements first reads the messages that they settle. A batch of claims reads ready messages, as many
    as this process knows of, and one more for each queue in which another process reported some: most are sent one at a
    time. settlements: their kinds, in the order in which they run.
    """
    kinds = {type(command) for command in batch.commands}
    first = next((kind for kind in settlements if kind in kinds), None)
    if first is not None:
        settling: list[Any] = [command for command in batch.commands if type(command) is first]
        return named_by(settling)[:2]
    if kinds <= {Claim}:
        notified = [queue for queue in batch.notified if queue in batch.receivers]
        waiting = [receiver.claim for queue in notified for receiver in batch.receivers[queue]]
        claims = [*waiting, *(each for each in batch.commands if isinstance(each, Claim))]
        if claims:
            return first_ready(tx, claims, more=len(notified))
    return ()
