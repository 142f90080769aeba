"""One reason, one error: the same class and code, whether the queue is embedded or reached over HTTP."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from forq_trio import (
    ContentTooLarge,
    ExponentialBackOff,
    ForqError,
    InvalidQueueName,
    InvalidRequest,
    InvalidSetting,
    MalformedMessageId,
    MalformedReceipt,
    MessageNotFound,
    OutOfRange,
    ProcessAfterInPast,
    ProduceToDeadLetterQueue,
    QueueFull,
    QueueNotEmpty,
    Rate,
    Scope,
)
from forq_trio.model import limits

from .face import Face
from .running import KINDS, open_face

UNKNOWN = "00000000-0000-8000-8000-000000000000"
REASONS: list[tuple[Callable[[Face], Awaitable[object]], type[ForqError]]] = [
    (lambda face: face.send(queue="no name"), InvalidQueueName),
    (lambda face: face.send(queue="q-dlq"), ProduceToDeadLetterQueue),
    (lambda face: face.send("x" * (limits.CONTENT_BYTES_MAX + 1)), ContentTooLarge),
    (lambda face: face.send(process_after=1), ProcessAfterInPast),
    (lambda face: face.send(priority=-1), OutOfRange),
    *(
        (lambda face, options=options: face.send(**options), InvalidRequest)
        for options in (
            {"delay_ms": 1.5},
            {"process_after": 4e12 + 0.5},
            {"ttl_ms": 60_000.5},
            {"max_attempts": 1.5},
            {"deduplication_id": "d", "deduplication_window_ms": 1.5},
            {"priority": 1.5},
            {"priority": True},
            {"priority": "5"},
            {"priority": None},
        )
    ),
    (lambda face: face.receive(wait_ms=0.5), InvalidRequest),
    (lambda face: face.receive(lease_ms=1.5), InvalidRequest),
    (lambda face: face.nack(UNKNOWN, delay_ms=1.5), InvalidRequest),
    (lambda face: face.extend(UNKNOWN, lease_ms=1_000.5), InvalidRequest),
    (lambda face: face.methods.create_token("t", [Scope.PRODUCE], expires_at=4e12 + 0.5), InvalidRequest),
    (lambda face: face.send(group=""), OutOfRange),
    (lambda face: face.send(dead_letter_queue="no name"), InvalidQueueName),
    (lambda face: face.receive(most=0), OutOfRange),
    (lambda face: face.receive(wait_ms=-1), OutOfRange),
    (lambda face: face.receive(lease_ms=-1), OutOfRange),
    (lambda face: face.nack(UNKNOWN, delay_ms=-1), OutOfRange),
    (lambda face: face.nack(UNKNOWN, reason="r" * (limits.REASON_LENGTH_MAX + 1)), OutOfRange),
    (lambda face: face.extend(UNKNOWN, lease_ms=-1), OutOfRange),
    (lambda face: face.release(*[UNKNOWN] * (limits.RECEIPTS_BATCH_MAX + 1)), OutOfRange),
    (lambda face: face.ack_by_id(UNKNOWN, "nonsense"), MalformedReceipt),
    (lambda face: face.ack_by_id(UNKNOWN, UNKNOWN), MessageNotFound),
    (lambda face: face.message("nonsense"), MalformedMessageId),
    (lambda face: face.message(UNKNOWN), MessageNotFound),
    (lambda face: face.peek(limit=0), OutOfRange),
    (lambda face: face.configure(lease_ms=-1), InvalidSetting),
    (lambda face: face.configure(overflow="explode"), InvalidRequest),
    (lambda face: face.send("one too many", queue="full"), QueueFull),
    (lambda face: face.remove("full"), QueueNotEmpty),
]


async def refusals(kind: str, url: str) -> list[tuple[type[ForqError], str]]:
    """Class and code of the error that each of these calls ends with."""
    found = []
    async with open_face(kind, url) as face:
        await face.configure("full", max_messages=1)
        await face.send(queue="full")
        for call, _ in REASONS:
            with pytest.raises(ForqError) as raised:
                await call(face)
            assert raised.value.message == str(raised.value) != ""
            found.append((type(raised.value), raised.value.code))
    return found


async def test_the_same_reason_is_the_same_error(tmp_path: Path) -> None:
    embedded, over_http = [await refusals(kind, f"sqlite:///{tmp_path / kind}") for kind in KINDS]
    assert embedded == over_http
    assert [kind for kind, _ in embedded] == [kind for _, kind in REASONS]


NAMED: list[tuple[Callable[[Face], Awaitable[object]], str, str]] = [
    (lambda face: face.methods.receive("q", lease_ms=-1, wait_ms=0), "lease_ms", "lease_ms must be between"),
    (lambda face: face.methods.receive("q", max_messages=0), "max_messages", "max_messages must be between"),
    (lambda face: face.methods.configure("q", lease_ms=-1), "lease_ms", "lease_ms: it must be between"),
    (lambda face: face.methods.configure("q", lease_ms="1"), "lease_ms", "lease_ms"),
    (
        lambda face: face.methods.configure("q", back_off=ExponentialBackOff(0)),
        "back_off",
        "back_off: initial_ms must be between",
    ),
    (
        lambda face: face.methods.configure("q", back_off={"initial_ms": 1, "max_ms": 0}),
        "back_off",
        "back_off: max_ms must be between",
    ),
    (lambda face: face.methods.configure("q", rate=Rate(1, 0)), "rate", "rate: period_ms must be between"),
    (lambda face: face.methods.configure("q", rate={"count": 1, "period_ms": "x"}), "rate.period_ms", "rate"),
    (
        lambda face: face.methods.configure("q", dead_letter_queue="q"),
        "dead_letter_queue",
        "dead_letter_queue: it must be another queue",
    ),
    (lambda face: face.send(process_after=1), "process_after", "process_after lies"),
    (lambda face: face.methods.create_token("t", ["produce"], expires_at=1), "expires_at", "expires_at: in"),
]
"""Calls, the argument that their error names in `field`, and how its message begins."""


async def test_errors_have_the_names_of_python(face: Face) -> None:
    for call, field, words in NAMED:
        with pytest.raises(ForqError) as caught:
            await call(face)
        assert (caught.value.field, str(caught.value)[: len(words)]) == (field, words)
