"""Keyed messages: offer, show, reschedule, drop. Our additions to Forq's API.

A key is one segment of the path, percent-encoded; the router decodes it once.
"""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute
from forq_trio.http.forq_api.reading import query_flag, query_limit, query_number, query_text
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import check_body, read_offer, read_offerings, results_of, valid
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors, limits
from forq_trio.model.access import Scope
from forq_trio.model.checks import check_producible
from forq_trio.wire import keys as wire
from forq_trio.wire.endpoints import keys as api

_read_reschedule = BodyReader(wire.RescheduleRequest)


class KeyEndpoints:
    """An offer answers 201 if it stored a message, else 200."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def offer(self, request: Request, queue: str, key: str) -> Response:
        """Answered once what became of the offer is durable."""
        check_body(request.body)
        offer = read_offer(request.body)
        if offer.dead_letter_queue:
            request.principal.check(Scope.PRODUCE, offer.dead_letter_queue)
        offering = wire.Offering.of(key, _kind(request), offer)
        offered = await self._broker.offer_message(queue, offering)
        return json_response(offered, 201 if offered.outcome == "created" else 200)

    async def offer_many(self, request: Request, queue: str) -> Response:
        """One commit; each offer that is refused is so alone."""
        check_producible(queue)
        entries = await read_offerings(request)
        outcomes = await self._broker.offer_many(queue, valid(entries))
        return json_response(wire.OfferResults(results_of(entries, outcomes, _offered, wire.OfferResult)))

    async def list(self, request: Request, queue: str) -> Response:
        """A page of keys."""
        page = await self._broker.keyed_messages(
            queue,
            prefix=query_text(request.query, "prefix") or "",
            kind=query_text(request.query, "kind"),
            after=query_text(request.query, "after"),
            limit=query_limit(request.query, limits.BROWSE_PAGE_MAX),
        )
        return json_response(page)

    async def show(self, request: Request, queue: str, key: str) -> Response:
        """The pending message of a key."""
        found = await self._broker.keyed_message(queue, key, _kind(request))
        if found is None:
            raise errors.KeyNotFound
        return json_response(found)

    async def reschedule(self, request: Request, queue: str, key: str) -> Response:
        """Change the due time alone."""
        wanted = _read_reschedule(request.body)
        offered = await self._broker.reschedule_key(
            queue,
            key,
            kind=_kind(request),
            process_after=wanted.process_after,
            delay_ms=wanted.delay_ms,
            once_more=wanted.once_more,
        )
        return json_response(offered)

    async def drop(self, request: Request, queue: str, key: str) -> Response:
        """204 if there was something to remove."""
        kind, query = _kind(request), request.query
        once_more = query_flag(query, "onceMore")
        revision = query_number(query, "revision", 0, 1, limits.SEQUENCE_MAX)
        if revision and once_more:
            reason = errors.InvalidParameter.about("onceMore")
            raise Refused(reason, "revision and onceMore exclude each other", field="onceMore")
        if revision:
            removed = await self._broker.ack_revision(queue, key, revision, kind)
        else:
            removed = await self._broker.drop_key(queue, key, kind, once_more=once_more)
        if not removed:
            raise errors.KeyNotFound
        return NO_CONTENT

    async def drop_all(self, request: Request, queue: str) -> Response:
        """Needs the name of the queue once more."""
        confirm = query_text(request.query, "confirm") or ""
        return json_response(
            wire.Dropped(await self._broker.drop_keys(queue, _kind(request), confirm=confirm))
        )


def _kind(request: Request) -> str:
    return query_text(request.query, "kind") or ""


def _offered(offered: wire.Offered) -> wire.OfferResult:
    return wire.OfferResult(
        offered.outcome,
        offered.id,
        offered.sequence,
        offered.process_after,
        offered.revision,
        offered.once_more,
    )


def key_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /queues/{queue}/keys. route: makes one of an endpoint and what responds."""
    keys = KeyEndpoints(broker)
    return [
        route(api.OFFER_MESSAGE, keys.offer),
        route(api.OFFER_MESSAGES, keys.offer_many),
        route(api.LIST_KEYS, keys.list),
        route(api.SHOW_KEY, keys.show),
        route(api.RESCHEDULE_KEY, keys.reschedule),
        route(api.DROP_KEY, keys.drop),
        route(api.DROP_KEYS, keys.drop_all),
    ]
