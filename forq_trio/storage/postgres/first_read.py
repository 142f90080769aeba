"""The first read of a batch: it is sent with the statements that begin the batch, so it costs no wait of its own."""

from collections.abc import Sequence
from typing import Any

from forq_trio.model.commands import Claim
from forq_trio.storage.engine import Batch
from forq_trio.storage.relational.operations.claim import first_ready
from forq_trio.storage.relational.operations.settle import named_by
from forq_trio.storage.relational.transaction import Transaction


def first_read(tx: Transaction, batch: Batch, settlements: Sequence[Any]) -> tuple[Any, ...]:
    """The statement, with its bindings, by which a batch reads its first messages, if nothing is changed before.

    Its first settlements find theirs; a batch of claims reads what is ready, if it is as this process knows it. A batch
    of which another process told counts on one message more: most are sent one at a time. settlements: their kinds, in
    the order in which they run. None: an empty tuple.
    """
    kinds = {type(command) for command in batch.commands}
    first = next((kind for kind in settlements if kind in kinds), None)
    if first is not None:
        settling: list[Any] = [command for command in batch.commands if type(command) is first]
        return named_by(settling)[:2]
    if kinds <= {Claim}:
        told = [queue for queue in batch.told if queue in batch.receivers]
        waiting = [receiver.claim for queue in told for receiver in batch.receivers[queue]]
        claims = [*waiting, *(each for each in batch.commands if isinstance(each, Claim))]
        if claims:
            return first_ready(tx, claims, more=len(told))
    return ()
