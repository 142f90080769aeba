"""Exemplars: for each bucket of a histogram the trace of the latest message that fell into it.

They are taken from the attribute `traceparent` of messages, batch by batch, and only where spans are made
(`Counters.exemplars`). A histogram has at most one for each bucket; only OpenMetrics shows them.

An ack names its message by a receipt, and the message is not read for it, so the durations until the ack have none.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

from forq_trio.model.commands import Claim, Produce, ProduceMany
from forq_trio.model.messages.types import Delivery
from forq_trio.model.traces import sampled_trace
from forq_trio.storage.engine import WAIT, Batch, BatchResult
from forq_trio.telemetry.histogram import Histogram
from forq_trio.telemetry.queue_durations import QueueDurations


def note_exemplars(batch: Batch, result: BatchResult, commits: Histogram, durations: QueueDurations) -> None:
    """Note the traces of a committed batch. commits: how long commits take, in seconds."""
    if result.commit_seconds is not None:
        trace = next(filter(None, map(sampled_trace, _attributes_sent(batch))), None)
        if trace is not None:
            commits.note_exemplar(trace, result.commit_seconds, batch.now_ms)
    waits = {queue: values for (kind, queue), values in result.durations.items() if kind == WAIT}
    for queue, deliveries in _delivered(batch, result, waits).items():
        histogram = durations.histogram(WAIT, queue)
        # Pipelines claim messages, too, and deliver them later: whose waits these are cannot be told then.
        if histogram is not None and len(deliveries) == len(waits[queue]):
            for delivery, wait in zip(deliveries, waits[queue], strict=True):
                trace = sampled_trace(delivery.attributes)
                if trace is not None:
                    histogram.note_exemplar(trace, wait, batch.now_ms)


def _attributes_sent(batch: Batch) -> Iterator[Mapping[str, str] | None]:
    """The attributes of the messages that a batch was to store for senders of messages without a key."""
    for command in batch.commands:
        if type(command) is Produce:
            yield command.message.attributes
        elif type(command) is ProduceMany:
            yield from (message.attributes for message in command.messages)


def _delivered(batch: Batch, result: BatchResult, queues: Mapping[str, object]) -> dict[str, list[Delivery]]:
    """The messages of these queues in the order of their claims: parked receivers first, then claims of the batch."""
    served = dict(result.served)
    found = {
        queue: [served.get(receiver.id, ()) for receiver in batch.receivers.get(queue, ())]
        for queue in queues
    }
    for command, outcome in zip(batch.commands, result.outcomes, strict=True):
        if type(command) is Claim and command.queue in found and isinstance(outcome, tuple):
            found[command.queue].append(outcome)
    return {queue: [*chain.from_iterable(each)] for queue, each in found.items()}
