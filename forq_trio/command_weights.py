"""What commands weigh: how many messages and bytes, at the most. Their sums bound a batch (inbox.py)."""

from collections.abc import Callable
from typing import Any

from forq_trio.model import limits
from forq_trio.model.commands import (
    Ack,
    Claim,
    Command,
    Delete,
    Extend,
    LeaseMessages,
    Nack,
    Produce,
    ProduceEach,
    ProduceMany,
    Publish,
    Purge,
    PurgeHistory,
    Redrive,
    Release,
    Resubmit,
    SettleLease,
    StagePage,
    Sweep,
    TrimHistory,
)
from forq_trio.model.messages import NewMessage


def content_bytes(command: Command[Any]) -> int:
    """How many bytes of content a command stores, at the most; their sum bounds a batch."""
    bytes_of = _CONTENT_BYTES.get(type(command))
    return 0 if bytes_of is None else bytes_of(command)


def message_count(command: Command[Any]) -> int:
    """How many messages a command can change; their sum bounds a batch, too."""
    count = _MESSAGE_COUNTS.get(type(command))
    return 1 if count is None else count(command)


def _bytes_max(message: NewMessage) -> int:
    content = message.content
    size = len(content) if content.isascii() else len(content) * _CHARACTER_BYTES_MAX
    return size if message.attributes is None else size + _ATTRIBUTES_BYTES_MAX


def _copied_bytes(command: Resubmit) -> int:
    return (
        limits.CONTENT_BYTES_MAX if command.content is None else len(command.content) * _CHARACTER_BYTES_MAX
    )


_CHARACTER_BYTES_MAX = 4
_ATTRIBUTES_BYTES_MAX = (
    limits.ATTRIBUTES_MAX
    * _CHARACTER_BYTES_MAX
    * (limits.ATTRIBUTE_KEY_LENGTH_MAX + limits.ATTRIBUTE_VALUE_LENGTH_MAX)
)
_CONTENT_BYTES: dict[type[Command[Any]], Callable[[Any], int]] = {
    Produce: lambda command: _bytes_max(command.message),
    ProduceMany: lambda command: sum(map(_bytes_max, command.messages)),
    ProduceEach: lambda command: sum([_bytes_max(message) for _, message in command.messages]),
    Resubmit: _copied_bytes,
    StagePage: lambda command: sum([len(part.body) for part in command.parts]),
    LeaseMessages: lambda _: limits.CONSUMER_STEP_BYTES_MAX,
}
_MESSAGE_COUNTS: dict[type[Command[Any]], Callable[[Any], int]] = {
    **dict.fromkeys((ProduceMany, ProduceEach), lambda command: len(command.messages)),
    **dict.fromkeys((Redrive, Delete), lambda command: len(command.message_ids)),
    **dict.fromkeys((Ack, Nack, Extend, Release), lambda command: len(command.receipts)),
    Claim: lambda command: command.max_messages,
    Publish: lambda command: len(command.stages),
    **dict.fromkeys((LeaseMessages, SettleLease), lambda _: limits.CONSUMER_STEP_MESSAGES_MAX),
    Sweep: lambda _: limits.SWEEP_BATCH_MAX,
    Purge: lambda _: limits.PURGE_BATCH_MAX,
    **dict.fromkeys((PurgeHistory, TrimHistory), lambda _: limits.HISTORY_STEP_MESSAGES),
}
