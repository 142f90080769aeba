"""Queues as a whole: settings, pause, purge, removal. Our additions to Forq's API."""

from collections.abc import Mapping

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute
from forq_trio.http.forq_api.reading import query_page
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.pages import page_of
from forq_trio.http.router import Route
from forq_trio.model.access import Scope
from forq_trio.model.queue_settings import QueueSettings, SettingsChange
from forq_trio.wire.endpoints import queues as api
from forq_trio.wire.queues import ConfiguredQueue, ConfiguredQueues, Purged


class _Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """What these endpoints read: a member in it asks for something that they do not do."""


_read_change = BodyReader(SettingsChange)
_read_object_without_members = BodyReader(_Nothing)
_encode = msgspec.json.Encoder().encode


def read_nothing(body: bytes) -> None:
    """Refuse a body that is neither absent nor an object without members."""
    if body:
        _read_object_without_members(body)


class AdministrationEndpoints:
    """Settings are read from the cache, as of the last commit; changes are answered once they are durable."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sorted_of: Mapping[str, QueueSettings] = {}
        self._names: list[str] = []

    async def list(self, request: Request) -> Response:
        """A page of the queues for which something was set and that the key covers, by name."""
        settings = self._broker.all_settings()
        if settings is not self._sorted_of:
            self._names, self._sorted_of = sorted(settings), settings
        page, last = page_of(self._names, request.principal, *query_page(request.query))
        queues = [
            ConfiguredQueue(settings=settings[queue], effective=self._broker.rules(queue), queue=queue)
            for queue in page
        ]
        return Response(200, _encode(ConfiguredQueues(queues, last)))

    async def show(self, request: Request, queue: str) -> Response:
        """The settings and the rules of a queue."""
        return Response(200, _encode(await self._broker.settings(queue)))

    async def change(self, request: Request, queue: str) -> Response:
        """Change the settings that the body names, and answer like `show`."""
        change = _read_change(request.body)
        if change.dead_letter_queue:
            request.principal.check(Scope.ADMIN, change.dead_letter_queue)
        return Response(200, _encode(await self._broker.change_settings(queue, change)))

    async def forget(self, request: Request, queue: str) -> Response:
        """204: the queue has the default settings. A paused queue stays paused."""
        await self._broker.reset_settings(queue)
        return NO_CONTENT

    async def pause(self, request: Request, queue: str) -> Response:
        """204: nobody gets messages until `resume`."""
        read_nothing(request.body)
        await self._broker.pause(queue)
        return NO_CONTENT

    async def resume(self, request: Request, queue: str) -> Response:
        """204: waiting receivers are served."""
        read_nothing(request.body)
        await self._broker.resume(queue)
        return NO_CONTENT

    async def purge(self, request: Request, queue: str) -> Response:
        """How many messages were removed: those sent before this request."""
        read_nothing(request.body)
        return Response(200, _encode(Purged(await self._broker.purge(queue))))

    async def remove(self, request: Request, queue: str) -> Response:
        """204: an empty queue and its settings are forgotten."""
        await self._broker.delete_queue(queue)
        return NO_CONTENT


def administration_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """Settings, pause, purge and removal. route: makes one of an endpoint and what responds."""
    endpoints = AdministrationEndpoints(broker)
    return [
        route(api.LIST_SETTINGS, endpoints.list),
        route(api.SHOW_SETTINGS, endpoints.show),
        route(api.CHANGE_SETTINGS, endpoints.change),
        route(api.FORGET_SETTINGS, endpoints.forget),
        route(api.PAUSE_QUEUE, endpoints.pause),
        route(api.RESUME_QUEUE, endpoints.resume),
        route(api.PURGE_QUEUE, endpoints.purge),
        route(api.REMOVE_QUEUE, endpoints.remove),
    ]
