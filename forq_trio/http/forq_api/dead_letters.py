"""Single dead letters: find, show, redrive, resubmit, delete. Our additions to Forq's API."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from urllib.parse import parse_qs

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.errors import caller_refusal
from forq_trio.http.forq_api.reading import check_length, check_range, query_number
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.views import message_view
from forq_trio.http.message import Request, Response
from forq_trio.model import limits
from forq_trio.model.access import Principal, Scope
from forq_trio.model.clock import Clock
from forq_trio.model.errors import CallerError, MalformedMessageId, MessageNotFound
from forq_trio.model.messages import MessageFilter, check_message_id
from forq_trio.wire import dead_letters as wire
from forq_trio.wire.dead_letters import DeadLetterFilter

_read_redrive = BodyReader(wire.RedriveMessages)
_read_delete = BodyReader(wire.DeleteMessages)
_read_resubmission = BodyReader(wire.Resubmission)
_encode = msgspec.json.Encoder().encode


class DeadLetterEndpoints:
    """All endpoints refuse a queue that takes no dead letters."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock

    async def search(self, request: Request, queue: str) -> Response:
        """A page of dead letters that match, newest first, and how far the search came."""
        broker = self._broker
        broker.check_dead_letter_queue(queue)
        wanted = filter_of(_filter_in_query(request.query), self._clock.now_ms())
        before = query_number(request.query, "before", 0, 1, limits.SEQUENCE_MAX, codes.OUT_OF_RANGE)
        limit = query_number(
            request.query,
            "limit",
            limits.SEARCH_PAGE_DEFAULT,
            1,
            limits.SEARCH_PAGE_MAX,
            codes.LIMIT_OUT_OF_RANGE,
        )
        found = await broker.search(queue, wanted, before_sequence=before or None, limit=limit)
        views = [message_view(info) for info in found.messages]
        return Response(200, _encode(wire.DeadLetters(views, found.searched, found.total, found.next_before)))

    async def show(self, request: Request, queue: str, message_id: str) -> Response:
        """One dead letter, with where it came from and how it failed."""
        self._broker.check_dead_letter_queue(queue)
        return Response(200, _encode(message_view(await self._broker.message(queue, message_id))))

    async def redrive(self, request: Request, queue: str) -> Response:
        """Redrive the named dead letters, in one commit."""
        wanted = _read_redrive(request.body)
        check_target(request, wanted.target)
        return await self._apply(
            queue, wanted.ids, partial(self._broker.redrive, queue, target=wanted.target)
        )

    async def delete(self, request: Request, queue: str) -> Response:
        """Delete the named dead letters, in one commit."""
        wanted = _read_delete(request.body)
        return await self._apply(queue, wanted.ids, partial(self._broker.delete_messages, queue))

    async def resubmit(self, request: Request, queue: str, message_id: str) -> Response:
        """Send an edited copy of a dead letter."""
        wanted = _read_resubmission(request.body)
        check_target(request, wanted.target)
        if request.principal.token is not None and wanted.target is None:
            original = await self._broker.message(queue, message_id)
            _check_sender(request.principal, original.source_queue)
        produced = await self._broker.resubmit(
            queue,
            message_id,
            content=wanted.content,
            attributes=wanted.attributes,
            target=wanted.target,
            remove=wanted.remove,
        )
        return Response(200, _encode(wire.Resubmitted(produced.id, produced.sequence)))

    async def _apply(
        self, queue: str, ids: list[str], apply: Callable[[Sequence[str]], Awaitable[tuple[bool, ...]]]
    ) -> Response:
        """Apply to all ids at once; malformed ones are left out and answered with their code."""
        self._broker.check_dead_letter_queue(queue)
        check_length("$.ids", len(ids), limits.MOVE_BATCH_MAX, "entries", codes.IDS_OUT_OF_RANGE)
        canonical = {message_id: _canonical_id(message_id) for message_id in ids}
        known = [form for form in dict.fromkeys(canonical.values()) if form is not None]
        outcomes = dict(zip(known, await apply(known) if known else (), strict=True))
        results = [_result(message_id, canonical[message_id], outcomes) for message_id in ids]
        return Response(200, _encode(wire.MovedMessages(results)))


def check_target(request: Request, target: str | None) -> None:
    """Raise Forbidden unless the client may move messages to `target`, if one is named."""
    if target is not None:
        request.principal.check(Scope.REDRIVE, target)


def _check_sender(principal: Principal, target: str | None) -> None:
    """Raise Forbidden unless it may put an edited copy into the queue that a message came from; None: it has none."""
    if target is not None and not principal.may(Scope.REDRIVE, target):
        principal.check(Scope.PRODUCE, target)


def filter_of(wanted: DeadLetterFilter, now_ms: int) -> MessageFilter:
    """The filter with its ages turned into times."""
    for name, age_ms in (("minAgeMs", wanted.min_age_ms), ("maxAgeMs", wanted.max_age_ms)):
        if age_ms is not None:
            check_range(f"$.filter.{name}", age_ms, 0, limits.SEARCH_AGE_MS_MAX, codes.OUT_OF_RANGE)
    return MessageFilter(
        reason=wanted.reason,
        since_ms=None if wanted.max_age_ms is None else now_ms - wanted.max_age_ms,
        until_ms=None if wanted.min_age_ms is None else now_ms - wanted.min_age_ms,
        attributes=wanted.attributes,
        text=wanted.text,
    )


def _filter_in_query(query: str) -> DeadLetterFilter:
    """The filter of a query."""
    given = parse_qs(query, keep_blank_values=True)
    attributes = {}
    for pair in given.get("attribute", ()):
        key, colon, value = pair.partition(":")
        if not colon:
            raise Refused(codes.ATTRIBUTE_INVALID, field="attribute")
        attributes[key] = value
    return DeadLetterFilter(
        reason=given["reason"][-1] if "reason" in given else None,
        min_age_ms=_age(query, "minAgeMs") if "minAgeMs" in given else None,
        max_age_ms=_age(query, "maxAgeMs") if "maxAgeMs" in given else None,
        attributes=attributes,
        text=given["text"][-1] if "text" in given else None,
    )


def _age(query: str, name: str) -> int:
    return query_number(query, name, 0, 0, limits.SEARCH_AGE_MS_MAX, codes.OUT_OF_RANGE)


def _canonical_id(message_id: str) -> str | None:
    try:
        return check_message_id(message_id)
    except MalformedMessageId:
        return None


def _result(message_id: str, canonical: str | None, outcomes: dict[str, bool]) -> wire.MovedMessage:
    if canonical is None:
        return _refused(message_id, MalformedMessageId())
    if not outcomes[canonical]:
        return _refused(
            message_id, MessageNotFound("it is not there, is processing, or has no queue to go to")
        )
    return wire.MovedMessage(message_id, True)


def _refused(message_id: str, error: CallerError) -> wire.MovedMessage:
    view = caller_refusal(error).view
    return wire.MovedMessage(message_id, False, view.code, view.message)
