"""Frames of lifecycle events, made up."""

from datetime import UTC, datetime, timedelta

SCHEMA = (
    "id long, at timestamp, kind string, queue string, message_id string, sequence long, attempt int, reason string,"
    " target string, received_at timestamp, duration_ms long, bytes long"
)
START = datetime(2026, 11, 23, 1, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(
    number: int,
    seconds: float,
    kind: str,
    queue: str = "q",
    message: str = "m1",
    *,
    attempt: int = 0,
    reason: str | None = None,
    target: str | None = None,
    received: float = 0,
    ms: int | None = None,
) -> tuple:
    return (number, at(seconds), kind, queue, message, number, attempt, reason, target, at(received), ms, 5)


def rows_of(frame) -> list[dict]:
    return [row.asDict() for row in frame.collect()]
