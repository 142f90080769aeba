"""Builds the UI of a server and runs it: the application, the server for it, and the live hub."""

import socket
import ssl
from collections.abc import Callable, Sequence

import trio

from forq_trio.config.settings import Config
from forq_trio.model.clock import SystemClock
from forq_trio.system import System
from forq_trio.ui.app import make_app
from forq_trio.ui.directory import Directory
from forq_trio.ui.key_counts import KeyCounts
from forq_trio.ui.live.hub import LiveHub
from forq_trio.ui.one_time_link import OneTimeLink
from forq_trio.ui.purges import Purges
from forq_trio.ui.rendering import Assets, Templates
from forq_trio.ui.row_lists import RowLists
from forq_trio.ui.server import UiServer
from forq_trio.ui.sessions import UiSessions, session_id
from forq_trio.ui.site import Site
from forq_trio.ui.slices import Slices
from forq_trio.ui.sparklines import Sparklines
from forq_trio.ui.summary import Summaries
from forq_trio.ui.worker_directory import WorkerDirectory


class RunningUi:
    """A running UI. port: where it listens. server: its HTTP server."""

    def __init__(self, server: UiServer, hub: LiveHub, purges: Sequence[Purges]) -> None:
        self.server = server
        self._hub = hub
        self._purges = purges
        self._scope = trio.CancelScope()
        self.port = server.ports[0]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `stop` or cancelled.

        Running requests are cancelled then; the commands that they gave to the writer are carried out nevertheless.
        """
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hub.run)
                for purges in self._purges:
                    nursery.start_soon(purges.run)
                await nursery.start(self.server.serve)
                task_status.started()

    def stop(self) -> None:
        """End all connections."""
        self._hub.close()
        self._scope.cancel()


def build_ui(
    config: Config,
    system: System,
    api_connections: Callable[[], int],
    listeners: Sequence[socket.socket],
    ssl_context: ssl.SSLContext | None,
    api_url: str,
    version: str,
    connections_max: int,
    link: OneTimeLink | None = None,
) -> RunningUi:
    """The UI on these listeners. api_connections: returns how many the API has. link: logs in, too."""
    clock = SystemClock()
    assets = Assets()
    hub = LiveHub()
    directory = Directory(system.broker, Slices())
    broker = system.broker
    purges = Purges(broker.purge, lambda queue: broker.known.counts_of(queue).total)
    history_purges = Purges(broker.purge_history, lambda queue: broker.known.history_of(queue).messages)
    site = Site(
        broker=system.broker,
        monitor=system.monitor,
        counters=system.counters,
        clock=clock,
        config=config,
        api_url=api_url,
        version=version,
        templates=Templates(assets, config.ui_base_path),
        sessions=UiSessions(system.broker, config.auth_secret, link),
        directory=directory,
        summaries=Summaries(system, directory, clock.now_ms),
        hub=hub,
        sparklines=Sparklines(system.monitor.history),
        row_lists=RowLists(),
        key_counts=KeyCounts(broker.lists.count_keys),
        system=system,
        purges=purges,
        history_purges=history_purges,
        workers=WorkerDirectory(broker, directory.slices, clock.now_ms),
        api_connections=api_connections,
    )
    server = UiServer(
        make_app(site, assets),
        listeners,
        lambda cookies: site.sessions.find(session_id(cookies)),
        system.counters,
        ssl_context,
        connections_max=connections_max,
        trust_proxy_headers=config.trust_proxy_headers,
    )
    return RunningUi(server, hub, (purges, history_purges))
