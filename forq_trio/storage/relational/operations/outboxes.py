"""Outboxes: messages and the position of their outbox are stored in one transaction.

- A relay that continues from another position than the stored one stores nothing.
- Messages are stored like sends, in their order, up to the first that is refused. The new position is the id of the
  last message that was stored.
- An outbox belongs to the access token that relayed it first. Any other token is refused with Forbidden; the server's
  secret is not.
"""

from collections.abc import Sequence

from forq_trio.model.commands import RelayMessages
from forq_trio.model.errors import ForqError
from forq_trio.model.outboxes.types import OutboxPosition, OutboxRefusal
from forq_trio.storage.engine import DEFERRED, Deferred
from forq_trio.storage.outboxes import check_outboxes, check_owner
from forq_trio.storage.relational.operations.send import look_up, send
from forq_trio.storage.relational.operations.table import carry_out_each, operation
from forq_trio.storage.relational.transaction import Transaction


@operation(RelayMessages)
def relay_all(
    tx: Transaction, commands: Sequence[RelayMessages]
) -> list[OutboxPosition | ForqError | Deferred]:
    look_up(tx, [(each.queue, each.message) for command in commands for each in command.messages])
    return carry_out_each(tx, commands, relay, lambda _, command: [command.outbox])


def relay(tx: Transaction, command: RelayMessages) -> OutboxPosition | ForqError | Deferred:
    found = tx.query("find_outbox", command.outbox)
    position, made_by = found[0] if found else (0, command.key.name)
    forbidden = check_owner(made_by, command.key)
    if forbidden is not None:
        return forbidden
    if position != command.after or not command.messages:
        return OutboxPosition(position)
    made = {} if found else _made(tx)
    if not found:
        refusal = check_outboxes(sum(made.values()), made.get(command.key.name, 0), command.key)
        if refusal is not None:
            return refusal
    newest = tx.sequence.last
    refused = None
    for each in command.messages:
        stored = send(tx, each.queue, (each.message,), newest)
        if isinstance(stored, Deferred):
            if position == command.after:
                return DEFERRED
            break
        if isinstance(stored, ForqError):
            refused = OutboxRefusal.of(each.id, stored)
            break
        position = each.id
    tx.write_inserts()
    if position != command.after:
        tx.query("save_outbox", command.outbox, position, command.key.name, tx.now_ms)
        if not found:
            tx.lookups.made["outboxes"] = made | {made_by: made.get(made_by, 0) + 1}
    return OutboxPosition(position, refused)


def _made(tx: Transaction) -> dict[str, int]:
    """How many outboxes each key made."""
    if "outboxes" not in tx.lookups.made:
        tx.lookups.made["outboxes"] = dict(tx.query("count_outboxes"))
    return tx.lookups.made["outboxes"]
