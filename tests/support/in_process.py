"""The real server in a thread of this process, on a loopback port.

Everything but signals, configuration and the process itself is as in `forq serve`; starting takes milliseconds.
"""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import trio
from opentelemetry.trace import TracerProvider

from forq_trio.broker.tracing import trace
from forq_trio.http.access import Access
from forq_trio.http.forq_api import forq_routes
from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.health import About, HealthCheck
from forq_trio.http.forq_api.refusals import transport_answer
from forq_trio.http.message import Handler
from forq_trio.http.router import HttpRouter
from forq_trio.http.throttle import Throttle
from forq_trio.http.tracing import tracing_requests
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server
from forq_trio.model.clock import SystemClock
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import MEMORY_URL, SQLITE_PREFIX, open_engine
from forq_trio.system import System, open_system
from support.real_server import SECRET


@contextmanager
def in_process_server(
    *,
    database: Path | str | None = None,
    ssl_context: ssl.SSLContext | None = None,
    lock_out: bool = False,
    events: bool = False,
    tracer_provider: TracerProvider | None = None,
) -> Iterator[str]:
    """Serve while the body runs; yields the URL. What the server reports as an error fails the test.

    database: a file, or the URL of one in PostgreSQL; None for one that is thrown away.
    lock_out: whether clients with wrong keys are, as they usually are.
    events: keep lifecycle events.
    tracer_provider: who gets the spans; None for no spans.
    """
    server = _InProcessServer(database, ssl_context, lock_out, events, tracer_provider)
    thread = threading.Thread(target=server.run)
    thread.start()
    port = server.started.get()
    try:
        assert port is not None, f"the server did not start: {server.errors}"
        yield f"http{'' if ssl_context is None else 's'}://127.0.0.1:{port}"
    finally:
        server.stop()
        thread.join()
    if server.errors:
        raise BaseExceptionGroup("the server reported errors", server.errors)


@dataclass
class _InProcessServer:
    """started: gets the port, or None from a server that could not start."""

    database: Path | str | None
    ssl_context: ssl.SSLContext | None
    lock_out: bool
    events: bool
    tracer_provider: TracerProvider | None
    started: "SimpleQueue[int | None]" = field(default_factory=SimpleQueue)
    errors: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        try:
            trio.run(self._run)
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.started.put(None)

    def stop(self) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._stopping.set)

    async def _run(self) -> None:
        self._token, self._stopping = trio.lowlevel.current_trio_token(), trio.Event()
        url = self.database or MEMORY_URL
        if isinstance(url, Path):
            url = f"{SQLITE_PREFIX}{url}"
        engine = open_engine(url, EngineSettings(events=self.events, history=True), "normal")
        async with open_system(engine, SystemClock()) as system:
            router = HttpRouter(self._routes(system), answer_error)
            handler: Handler = router
            if self.tracer_provider is not None:
                trace(system.broker, self.tracer_provider, served=True)
                handler = tracing_requests(router, self.tracer_provider)
            server = Server(
                handler,
                await open_listeners("127.0.0.1", 0),
                admit=router.admit,
                on_error=self.errors.append,
                refuse=transport_answer,
                ssl_context=self.ssl_context,
            )
            async with trio.open_nursery() as nursery:
                await nursery.start(server.serve)
                self.started.put(server.ports[0])
                await self._stopping.wait()
                server.stop_accepting()
                system.writer.drain_receivers()
                await server.drain(0)

    def _routes(self, system: System) -> list:
        # Between any two wrong keys a minute passes on the other clock: nobody is locked out.
        throttle = Throttle() if self.lock_out else Throttle(count(step=61.0).__next__)
        access = Access(SECRET, system.broker.keys, throttle)
        about = About("test", "sqlite", system.engine.durability)
        return [
            *forq_routes(system.broker, access, system.monitor),
            *HealthCheck(system.broker, about).routes(),
        ]
