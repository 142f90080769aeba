"""Cuts a stream of messages into batches that the server accepts."""

from collections.abc import Iterable, Iterator

import msgspec

from forq_trio.model.limits import PRODUCE_BATCH_BYTES_MAX, PRODUCE_BATCH_MAX
from forq_trio.model.messages.new_message import NewMessage


def batches(messages: Iterable[NewMessage]) -> Iterator[list[NewMessage]]:
    """Lists of up to 1,000 messages and 4 MiB of JSON, in order, for `produce_many`; made lazily."""
    batch: list[NewMessage] = []
    batch_bytes = 0
    for message in messages:
        message_bytes = len(msgspec.json.encode(message)) + 1
        full = len(batch) == PRODUCE_BATCH_MAX or batch_bytes + message_bytes > PRODUCE_BATCH_BYTES_MAX
        if batch and full:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(message)
        batch_bytes += message_bytes
    if batch:
        yield batch
