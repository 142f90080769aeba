"""Stages, publications, and exports of a queue. Our additions to Forq's API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling, with_key
from forq_trio.http.forq_api.reading import check_length
from forq_trio.http.forq_api.refusals import Refused, shortened
from forq_trio.http.forq_api.sends import ReadSlices, read_our_message
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_producible
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing import bodies
from forq_trio.model.publishing import endpoints as api

_read_publish = BodyReader(bodies.PublishRequest)


class PublishingEndpoints:
    """Reads a page in slices, with other tasks in between, and few long pages at a time, only one for each caller.

    A decoded page takes many times the memory of its body.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._reading = trio.CapacityLimiter(limits.STAGE_PAGES_READ_MAX)
        self._reading_of: dict[str, trio.Lock] = {}

    async def stage(self, request: Request, queue: str, stage: str, page: str) -> Response:
        """Store a page, all or nothing."""
        check_producible(queue)
        number = _number(page, "page")
        is_long = len(request.body) > limits.READ_SLICE_BYTES
        async with self._one_at_a_time(request.caller) if is_long else nullcontext():
            messages = await _read_page(request.body)
            for target in {message.dead_letter_queue for message in messages} - {None, ""}:
                request.principal.check(Scope.PRODUCE, target)
            key = request.principal.key
            return json_response(await self._broker.stage(queue, stage, number, messages, key=key))

    @asynccontextmanager
    async def _one_at_a_time(self, caller: str) -> AsyncIterator[None]:
        """Wait until no other long page of this caller is being read, and only few of other callers."""
        lock = self._reading_of.setdefault(caller, trio.Lock())
        try:
            async with lock, self._reading:
                yield
        finally:
            if not lock.locked():
                self._reading_of.pop(caller, None)

    async def publish(self, request: Request) -> Response:
        """Publish stages; answers when all their messages are in their queues, or after a while."""
        wanted = _read_publish(request.body)
        for queue in {stage.queue for stage in wanted.stages}:
            request.principal.check(Scope.PRODUCE, queue)
        published = await self._broker.publish(
            wanted.app,
            wanted.version,
            wanted.stages,
            once=wanted.once,
            key=request.principal.key,
            seconds=limits.PUBLISH_WAIT_SECONDS,
        )
        return json_response(published)


async def _read_page(body: bytes) -> list[NewMessage]:
    """The messages of a page, a line each. Raises Refused, with the number of the line (from 0) in `field`."""
    if len(body) > limits.STAGE_PAGE_BYTES_MAX:
        bytes_max = limits.STAGE_PAGE_BYTES_MAX
        raise Refused(errors.ContentTooLarge, f"a page has at most {bytes_max} bytes", status=413)
    if not body:
        return []
    body = body.removesuffix(b"\n")
    count = body.count(b"\n") + 1
    check_length(
        "$.lines", count, limits.STAGE_PAGE_MESSAGES_MAX, "lines", errors.OutOfRange.about("messages")
    )
    messages: list[NewMessage] = []
    slices = ReadSlices()
    for index, line in enumerate(body.split(b"\n")):
        await slices.read(len(line))
        try:
            if len(line) > limits.SEND_BODY_BYTES_MAX:
                bytes_max = limits.SEND_BODY_BYTES_MAX
                raise Refused(errors.ContentTooLarge, f"a line has at most {bytes_max} bytes", status=413)
            messages.append(read_our_message(line))
        except Refused as refusal:
            raise _of_line(index, refusal) from None
    return messages


def _of_line(index: int, refusal: Refused) -> Refused:
    """The refusal of a page because of this line."""
    view = refusal.view
    field = f"$.lines[{index}]" + (view.field or "").removeprefix("$")
    return Refused(refusal.reason, view.message, field=field, status=refusal.status)


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(limits.SEQUENCE_MAX))):
        raise Refused(errors.OutOfRange, f"{field} must be a number, not '{shortened(text)}'", field=field)
    return int(text)


def publishing_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes for stages, publications and exports. route: see `forq_routes`."""
    publishing = PublishingEndpoints(broker)
    return [
        route(api.STAGE_PAGE, publishing.stage),
        calling(route, api.DISCARD_STAGE, broker.discard_stage),
        route(api.PUBLISH, publishing.publish),
        calling(route, api.LIST_APPS, broker.apps, about_caller=with_key),
        calling(route, api.SHOW_PUBLICATION, broker.publication, about_caller=with_key),
        calling(route, api.DELETE_APP, broker.delete_app, about_caller=with_key),
        calling(route, api.EXPORT_QUEUE, broker.lines.export, lines=True),
        calling(route, api.EXPORT_PARTITIONS, broker.export_partitions),
    ]
