"""The admin UI in a thread of this process, on a loopback port: for what no client can arrange over HTTP."""

import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.config.load import load
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.model.clock import SystemClock
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import MEMORY_URL, open_engine
from forq_trio.system import open_system
from forq_trio.ui.one_time_link import OneTimeLink
from forq_trio.ui.start import build_ui
from support.real_server import SECRET

SETTINGS = {"FORQ_AUTH_SECRET": SECRET, "FORQ_ENV": "local", "FORQ_MEMORY": "true"}


class InProcessUi:
    """ui_url: where it is; rules: the paths that it serves, each with a method. `call` runs a method of its broker."""

    def __init__(
        self, port: int, broker: Broker, token: trio.lowlevel.TrioToken, rules: Sequence[tuple[str, str]]
    ) -> None:
        self.rules = rules
        self.ui_url = f"http://127.0.0.1:{port}"
        self.broker = broker
        self._token = token

    def call(self, do: Callable[..., Awaitable[Any]], *args: object, **named: object) -> Any:
        return trio.from_thread.run(partial(do, *args, **named), trio_token=self._token)


@contextmanager
def in_process_ui(
    url: str = MEMORY_URL,
    settings: EngineSettings | None = None,
    link: OneTimeLink | None = None,
    **environment: str,
) -> Iterator[InProcessUi]:
    """Over a database, until the block ends. settings: None for those of a new server. environment: its variables."""
    started: SimpleQueue[tuple[InProcessUi, trio.Event] | BaseException] = SimpleQueue()

    async def serve() -> None:
        config = load(environ=SETTINGS | environment).config
        engine = open_engine(url, settings or EngineSettings(), "normal")
        stop = trio.Event()
        async with open_system(engine, SystemClock()) as system, trio.open_nursery() as nursery:
            listeners = await open_listeners("127.0.0.1", 0)
            api_url = "http://localhost:8080"
            ui = build_ui(config, system, lambda: 0, listeners, None, api_url, "test", 100, link)
            await nursery.start(ui.run)
            token = trio.lowlevel.current_trio_token()
            app: Any = ui.server.app
            rules = [
                (method, rule.rule)
                for rule in app.app.url_map.iter_rules()
                for method in sorted(rule.methods & {"GET", "POST"})
            ]
            started.put((InProcessUi(ui.port, system.broker, token, rules), stop))
            await stop.wait()
            ui.stop()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:
            started.put(error)

    thread = threading.Thread(target=run)
    thread.start()
    found = started.get()
    if isinstance(found, BaseException):
        raise found
    ui, stop = found
    try:
        yield ui
    finally:
        trio.from_thread.run_sync(stop.set, trio_token=ui._token)
        thread.join()
