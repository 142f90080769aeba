"""The reference engine: outboxes."""

from forq_trio.model.commands import RelayMessages, TakeSetAside
from forq_trio.model.errors import ForqError
from forq_trio.model.outboxes.types import OutboxPosition, OutboxRefusal
from forq_trio.storage.outboxes import check_outboxes, check_owner
from oracle.operations import operation
from oracle.send import send
from oracle.transaction import Transaction


@operation(RelayMessages)
def relay(tx: Transaction, command: RelayMessages) -> OutboxPosition:
    outboxes = tx.state.outboxes
    position, made_by = outboxes.get(command.outbox, (0, command.key.name))
    forbidden = check_owner(made_by, command.key)
    if forbidden is not None:
        raise forbidden
    if position != command.after or not command.messages:
        return OutboxPosition(position)
    if command.outbox not in outboxes:
        of_key = sum(maker == command.key.name for _, maker in outboxes.values())
        refusal = check_outboxes(len(outboxes), of_key, command.key)
        if refusal is not None:
            raise refusal
    newest = tx.state.last_seq
    refused = None
    for each in command.messages:
        try:
            sent = send(tx, each.queue, (each.message,), newest)
        except ForqError as error:
            sent = error  # type: ignore[assignment]
        if isinstance(sent, ForqError):
            refused = OutboxRefusal.of(each.id, sent)
            break
        position = each.id
    if position != command.after:
        outboxes[command.outbox] = position, made_by
    return OutboxPosition(position, refused)


@operation(TakeSetAside)
def take(tx: Transaction, command: TakeSetAside) -> tuple[int, ...]:
    """There are none: applications cannot send in transactions of their own here."""
    return ()
