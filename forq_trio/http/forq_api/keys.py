"""Keyed messages: offer, show, reschedule, drop. Our additions to Forq's API.

A key is one segment of the path, percent-encoded; the router decodes it once.
"""

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import MessageReader, MessagesReader, check_body, results_of, valid
from forq_trio.http.message import NO_CONTENT, Request, Response, json_response
from forq_trio.http.router import Route
from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_producible
from forq_trio.model.keys import bodies
from forq_trio.model.keys import endpoints as api
from forq_trio.model.keys.types import Offer, Offered, Offering

read_offer = MessageReader(Offer)
_read_offerings = MessagesReader(bodies.Offerings, Offering)
_read_kind = QueryReader(bodies.KindQuery)
_read_drop = QueryReader(bodies.DropKeyQuery)


class KeyEndpoints:
    """An offer answers 201 if it stored a message, else 200."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def offer(self, request: Request, queue: str, key: str) -> Response:
        """Offer a message under a key; answers once the outcome is durable."""
        check_body(request.body)
        offer = read_offer(request.body)
        if offer.dead_letter_queue:
            request.principal.check(Scope.PRODUCE, offer.dead_letter_queue)
        offering = Offering.of(key, _read_kind(request.query).kind, offer)
        offered = await self._broker.offer_message(queue, offering)
        return json_response(offered, 201 if offered.outcome == "created" else 200)

    async def offer_many(self, request: Request, queue: str) -> Response:
        """Offer many messages in one commit; an offer that is refused does not affect the others."""
        check_producible(queue)
        entries = await _read_offerings(request)
        outcomes = await self._broker.offer_many(queue, valid(entries))
        return json_response(bodies.OfferResults(results_of(entries, outcomes, _offered, bodies.OfferResult)))

    async def drop(self, request: Request, queue: str, key: str) -> Response:
        """Remove the message of a key: 204 if there was one."""
        wanted = _read_drop(request.query)
        if wanted.revision is not None and wanted.once_more:
            reason = errors.InvalidParameter.about("onceMore")
            raise Refused(reason, "revision and onceMore exclude each other", field="onceMore")
        if wanted.revision is not None:
            removed = await self._broker.ack_revision(queue, key, wanted.revision, wanted.kind)
        else:
            removed = await self._broker.drop_key(queue, key, wanted.kind, once_more=wanted.once_more)
        if not removed:
            raise errors.KeyNotFound
        return NO_CONTENT


def _offered(offered: Offered) -> bodies.OfferResult:
    return bodies.OfferResult(
        offered.outcome,
        offered.id,
        offered.sequence,
        offered.process_after,
        offered.revision,
        offered.once_more,
    )


def key_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /queues/{queue}/keys. route: makes one of an endpoint and its function."""
    keys = KeyEndpoints(broker)
    return [
        route(api.OFFER_MESSAGE, keys.offer),
        route(api.OFFER_MESSAGES, keys.offer_many),
        calling(route, api.LIST_KEYS, broker.keyed_messages),
        calling(route, api.SHOW_KEY, broker.keyed_message, absent=errors.KeyNotFound),
        calling(route, api.RESCHEDULE_KEY, broker.reschedule_key),
        route(api.DROP_KEY, keys.drop),
        calling(route, api.DROP_KEYS, broker.drop_keys, wraps=True),
    ]
