"""Work on dead letters: what goes over the wire, and each operation as a value. No I/O in here."""

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from forq_trio.client.calls import Call, json_body, queue_path
from forq_trio.client.types import MessageInfo

MOVE_BATCH_MAX = 1_000
CANCEL_SECONDS = 60.0


class DeadLetterFilter(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a dead letter must be like; None and {} mean any.

    reason: why it is one, exactly. min_age_ms, max_age_ms: for how long it has been one. attributes: all of these,
    with these values. text: part of its content, exactly.
    """

    reason: str | None = None
    min_age_ms: int | None = None
    max_age_ms: int | None = None
    attributes: dict[str, str] = {}
    text: str | None = None


class DeadLetterPage(Struct, frozen=True, rename="camel"):
    """Those that match, newest first, after looking at `searched` of the queue's `total` messages.

    next_before: the sequence to go on below; None when the queue was searched to its end.
    """

    messages: list[MessageInfo]
    searched: int
    total: int
    next_before: int | None


class MoveResult(Struct, frozen=True):
    """What became of one message. code: why it was refused."""

    id: str
    ok: bool
    code: str | None = None


class Resubmitted(Struct, frozen=True):
    """The copy that was sent."""

    id: str
    sequence: int


class AppliedFilter(Struct, frozen=True):
    """The filter of a redrive, its ages as times (epoch ms)."""

    reason: str | None
    since: int | None
    until: int | None
    attributes: dict[str, str]
    text: str | None


class RedriveInfo(Struct, frozen=True, rename="camel"):
    """A redrive of all that match, as it stands.

    searched: how many messages were looked at, of `total` at its start. matched: how many of them match and can be
    moved; skipped: how many match and cannot. moved: how many were. error: why it failed.
    """

    id: str
    queue: str
    state: Literal["running", "done", "cancelled", "failed"]
    dry_run: bool
    filter: AppliedFilter
    target: str | None
    rate_per_second: int | None
    searched: int
    total: int
    matched: int
    skipped: int
    moved: int
    started_at: int
    finished_at: int | None
    error: str | None


class _Results(Struct):
    results: list[MoveResult]


class _Redrives(Struct):
    redrives: list[RedriveInfo]


_read_page = msgspec.json.Decoder(DeadLetterPage).decode
_read_redrive = msgspec.json.Decoder(RedriveInfo).decode


def search(
    queue: str, wanted: DeadLetterFilter, before_sequence: int | None, limit: int
) -> Call[DeadLetterPage]:
    members: dict[str, object] = {
        "reason": wanted.reason,
        "minAgeMs": wanted.min_age_ms,
        "maxAgeMs": wanted.max_age_ms,
        "text": wanted.text,
        "before": before_sequence,
        "limit": limit,
        "attribute": [f"{key}:{value}" for key, value in wanted.attributes.items()],
    }
    query = urlencode({name: value for name, value in members.items() if value is not None}, doseq=True)
    return Call("GET", f"{_letters(queue)}?{query}", _read_page)


def show(queue: str, message_id: str) -> Call[MessageInfo]:
    return Call("GET", _letter(queue, message_id), msgspec.json.Decoder(MessageInfo).decode)


def redrive(queue: str, message_ids: Sequence[str], target: str | None) -> Call[list[MoveResult]]:
    members = _given({"ids": message_ids, "target": target})
    return Call("POST", f"{_letters(queue)}/redrive", _read_results, json_body(members))


def delete(queue: str, message_ids: Sequence[str]) -> Call[list[MoveResult]]:
    return Call("POST", f"{_letters(queue)}/delete", _read_results, json_body({"ids": message_ids}))


def resubmit(
    queue: str,
    message_id: str,
    content: str | None,
    attributes: Mapping[str, str] | None,
    target: str | None,
    remove: bool,
) -> Call[Resubmitted]:
    edited = None if attributes is None else dict(attributes)
    members = _given({"content": content, "attributes": edited, "target": target, "remove": remove})
    path = f"{_letter(queue, message_id)}/resubmit"
    return Call("POST", path, msgspec.json.Decoder(Resubmitted).decode, json_body(members))


def start_redrive(
    queue: str, wanted: DeadLetterFilter, target: str | None, rate_per_second: int | None, dry_run: bool
) -> Call[RedriveInfo]:
    members = _given(
        {"filter": wanted, "target": target, "ratePerSecond": rate_per_second, "dryRun": dry_run}
    )
    return Call("POST", f"{_letters(queue)}/redrives", _read_redrive, json_body(members))


def redrives(queue: str) -> Call[list[RedriveInfo]]:
    return Call(
        "GET",
        f"{_letters(queue)}/redrives",
        lambda answer: msgspec.json.decode(answer, type=_Redrives).redrives,
    )


def show_redrive(queue: str, redrive_id: str) -> Call[RedriveInfo]:
    return Call("GET", f"{_letters(queue)}/redrives/{quote(redrive_id, safe='')}", _read_redrive)


def cancel_redrive(queue: str, redrive_id: str) -> Call[RedriveInfo]:
    path = f"{_letters(queue)}/redrives/{quote(redrive_id, safe='')}/cancel"
    return Call("POST", path, _read_redrive, wait_seconds=CANCEL_SECONDS)


def _letters(queue: str) -> str:
    return f"{queue_path(queue)}/dead-letters"


def _letter(queue: str, message_id: str) -> str:
    return f"{_letters(queue)}/{quote(message_id, safe='')}"


def _read_results(answer: bytes) -> list[MoveResult]:
    return msgspec.json.decode(answer, type=_Results).results


def _given(members: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}
