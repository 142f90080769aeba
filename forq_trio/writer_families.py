"""The families of the writer: who waits for it, what it refuses, and what is stored as of the last commit."""

from collections.abc import Iterator

from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import Family, by_label, by_queue, gauge
from forq_trio.writer_actor import WriterActor


def parked_families(writer: WriterActor, counters: Counters) -> Iterator[Family]:
    """The parked receivers."""
    yield gauge(
        "forq_queue_waiting_consumers",
        "Consumers that wait for a message of a queue, now.",
        by_queue(counters.waiting(writer.parked)),
    )


def call_families(writer: WriterActor) -> Iterator[Family]:
    """The calls that wait, and those that are refused."""
    yield gauge("forq_inbox_calls", "Calls that wait to be taken into a commit, now.", writer.inbox_calls)
    refusal = writer.storage.refusal
    yield gauge(
        "forq_sends_refused",
        "1 while sends to all queues are refused for this cause, else 0.",
        by_label("cause", {why: int(why == refusal) for why in REFUSAL_WORDS}),
    )


def log_families(writer: WriterActor) -> Iterator[Family]:
    """The history of finished messages, and the lifecycle events."""
    snapshot = writer.snapshot()
    history, events = snapshot.history_of(None), snapshot.logs["events"]
    yield gauge(
        "forq_history_messages",
        "Finished messages that are kept, refreshed every 30 seconds.",
        history.messages,
    )
    yield gauge(
        "forq_history_bytes",
        "Bytes of content and attributes of finished messages, refreshed every 30 seconds.",
        history.bytes,
    )
    yield gauge("forq_events_stored_bytes", "Bytes that the kept lifecycle events take, now.", events.bytes)
    yield gauge("forq_events_first_id", "The id of the oldest lifecycle event that is kept.", events.first)
    yield gauge("forq_events_last_id", "The id of the newest lifecycle event, 0 without one.", events.last)
