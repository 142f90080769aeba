"""Queues as a whole: settings, pause, purge, removal. Our additions to Forq's API."""

from collections.abc import Mapping

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.message import Request, Response, json_response
from forq_trio.http.pages import page_of
from forq_trio.http.router import Route
from forq_trio.model.access.types import Scope
from forq_trio.model.queues import endpoints as api
from forq_trio.model.queues.bodies import ConfiguredQueue, ConfiguredQueues, QueuesQuery
from forq_trio.model.queues.settings import QueueSettings, QueueTable, SettingsChange

_read_change = BodyReader(SettingsChange)
_read_table = BodyReader(QueueTable)
_read_page = QueryReader(QueuesQuery)


class AdministrationEndpoints:
    """Settings are read from the cache, as of the last commit; changes are answered once they are durable."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._sorted_of: Mapping[str, QueueSettings] = {}
        self._names: list[str] = []

    async def list(self, request: Request) -> Response:
        """A page of the queues that have settings and that the key covers, by name."""
        settings = self._broker.known.settings()
        if settings is not self._sorted_of:
            self._names, self._sorted_of = sorted(settings), settings
        wanted = _read_page(request.query)
        page, last = page_of(self._names, request.principal, wanted.after, wanted.limit)
        queues = [
            ConfiguredQueue(settings=settings[queue], effective=self._broker.known.rules(queue), queue=queue)
            for queue in page
        ]
        return json_response(ConfiguredQueues(queues, last))

    async def change(self, request: Request, queue: str) -> Response:
        """Change the settings that the body names, and answer like `show`."""
        change = _read_change(request.body)
        if change.dead_letter_queue:
            request.principal.check(Scope.ADMIN, change.dead_letter_queue)
        return json_response(await self._broker.change_settings(queue, change))

    async def bind(self, request: Request, queue: str) -> Response:
        """Bind a queue to the table that the body names.

        A token for some queues only is refused: it could read any table in this way.
        """
        request.principal.check(Scope.ADMIN)
        wanted = _read_table(request.body)
        return json_response(await self._broker.bind(queue, wanted.table, layout=wanted.layout))


def administration_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes of settings, pause, purge and removal. route: makes one of an endpoint and its function."""
    endpoints = AdministrationEndpoints(broker)
    return [
        route(api.LIST_SETTINGS, endpoints.list),
        calling(route, api.SHOW_SETTINGS, broker.settings),
        route(api.CHANGE_SETTINGS, endpoints.change),
        calling(route, api.FORGET_SETTINGS, broker.reset_settings),
        route(api.BIND_QUEUE, endpoints.bind),
        calling(route, api.SHOW_TABLE, broker.bound_table),
        calling(route, api.UNBIND_QUEUE, broker.unbind),
        calling(route, api.PAUSE_QUEUE, broker.pause),
        calling(route, api.RESUME_QUEUE, broker.resume),
        calling(route, api.PURGE_QUEUE, broker.purge, wraps=True),
        calling(route, api.REMOVE_QUEUE, broker.delete_queue),
    ]
