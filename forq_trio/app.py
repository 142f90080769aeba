"""The composition root of `forq serve`: builds every part, starts them in order, stops them in order. No logic.

Start: bind the address, open the database, start the actors, serve.
Stop, on SIGTERM, SIGINT or SIGHUP: accept no more connections, answer parked receivers with nothing, finish the running
requests (within SHUTDOWN_SECONDS_MAX), then stop the actors: every command that was sent is committed, and the log is
moved into the file.
"""

import gc
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING

import trio

from forq_trio.broker.broker import Broker
from forq_trio.config.settings import Config
from forq_trio.config.values import HostPort
from forq_trio.http.access import Access, ApiKeyGate
from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.health import About, HealthCheck
from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.http.forq_api.openapi import openapi_routes
from forq_trio.http.forq_api.refusals import error_body_start, transport_answer
from forq_trio.http.forq_api.routes import forq_routes
from forq_trio.http.message import Admit, Handler
from forq_trio.http.rejections import counting_refusals, counting_refused_heads, counting_rejections
from forq_trio.http.request_log import logging_refusals, logging_refused_heads, logging_requests
from forq_trio.http.router import HttpRouter
from forq_trio.http.sasquatch_api import SasquatchOptions, sasquatch_routes
from forq_trio.http.sqs_api import SqsAccount, answering_as_sqs, sqs_routes
from forq_trio.http.throttle import Throttle
from forq_trio.http.transport.config import TransportConfig
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.open_files import allow_connections
from forq_trio.http.transport.server import Server
from forq_trio.jobs.backup_copy import BackupSettings
from forq_trio.jobs.cleanup import INTERVAL_SECONDS, intervals
from forq_trio.jobs.retention import Retention
from forq_trio.model import limits
from forq_trio.model.access.secret_checks import SecretCheck
from forq_trio.model.commands import SweepKind
from forq_trio.model.errors import ContentTooLarge, ForqError
from forq_trio.model.server.database_urls import OtherUrls
from forq_trio.model.traces import sdk_is_set_up
from forq_trio.model.version import installed_version
from forq_trio.storage.engine import Engine, EngineSettings
from forq_trio.storage.open import MEMORY_URL, SQLITE_PREFIX, open_engine
from forq_trio.store import CommitFailed
from forq_trio.system import System, open_system
from forq_trio.telemetry import log
from forq_trio.telemetry.budgets import budget_families
from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.telemetry.log import LogEvent
from forq_trio.ui.families import ui_families

if TYPE_CHECKING:
    from forq_trio.ui.one_time_link import OneTimeLink
    from forq_trio.ui.start import RunningUi

FORCED_EXIT_CODE = 70
FORCED_EXIT_SECONDS = limits.SHUTDOWN_SECONDS_MAX + 30.0


class StartFailed(ForqError):
    """The server could not start; the message says why in one sentence"""


class Died(ForqError):
    """A commit failed, so the server ended; after a restart the database says what was committed"""


OnListening = Callable[[str, str | None], None]
"""Called with the URLs of the API and of the admin UI (None if it is not served) once both are served."""

Beside = Callable[[Broker], AbstractAsyncContextManager[object]]
"""What runs on the server's broker while it serves: begun before clients are told, ended before it stops serving."""


def run(
    config: Config,
    on_listening: OnListening | None = None,
    *,
    link: "OneTimeLink | None" = None,
    beside: Beside | None = None,
) -> int:
    """Serve until a signal to stop; returns 0. link: logs in to the admin UI, too.

    Raises StartFailed, StorageOpenError, or Died after a failed commit.
    """
    log.configure(config.log_level, config.log_format)
    try:
        trio.run(partial(serve, config, on_listening, link=link, beside=beside))
    except BaseExceptionGroup as group:
        failed = group.subgroup(CommitFailed)
        if failed is None:
            raise
        log.log(LogEvent.COMMIT_FAILED, exception=failed)
        raise Died from group
    log.log(LogEvent.SERVER_STOPPED)
    return 0


async def serve(
    config: Config,
    on_listening: OnListening | None = None,
    *,
    link: "OneTimeLink | None" = None,
    beside: Beside | None = None,
) -> None:
    """Start everything, wait for a signal to stop, then stop everything."""
    with trio.open_signal_receiver(*stop_signals()) as signals:
        listeners, ui_listeners = await _listen_all(config)
        try:
            engine = await _open_engine(config)
        except BaseException:
            for listener in (*listeners, *ui_listeners):
                listener.close()
            raise
        async with open_system(
            engine,
            reader_pool_size=config.reader_pool_size,
            sweep_seconds=_sweep_seconds(config),
            disk_reserve_bytes=config.disk_reserve_mb * limits.MIB,
            backup=_backup_settings(config),
            monitored=True,
            history=Retention(config.history_hours, config.history_max_mib),
            events=Retention(config.events_hours, config.events_max_mib),
        ) as system:
            await _compare_secrets(config, system)
            fit = allow_connections(with_ui=bool(ui_listeners))
            ui: RunningUi | None = None

            def families() -> Iterator[Family]:
                yield from ui_families(None if ui is None else ui.server)
                yield from budget_families(server.budgets | system.writer.budgets)

            server: Server = _build_server(config, system, families, listeners, fit.api)
            system.broker.known_processes.connections = lambda: server.connections
            api_url = _url(config, config.api_addr, server.ports[0])
            if ui_listeners:
                ui = _build_ui(config, system, server, ui_listeners, api_url, fit.ui, link)
            async with _serving(server, ui, system, beside):
                _tune_collector()
                log.log(
                    LogEvent.SERVER_STARTED,
                    api=str(config.api_addr._replace(port=server.ports[0])),
                    ui=None if ui is None else str(config.ui_addr._replace(port=ui.port)),
                    database=_database(config),
                    durability=engine.durability,
                    version=_version(),
                    pid=os.getpid(),
                )
                if ui is not None and config.ui_needs_a_proxy:
                    log.log(
                        LogEvent.UI_PLAIN,
                        ui=str(config.ui_addr._replace(port=ui.port)),
                        advice=(
                            "a proxy with TLS and FORQ_TRUST_PROXY_HEADERS=true, or FORQ_TLS_CERT and FORQ_TLS_KEY,"
                            " or FORQ_ENV=local to do without TLS"
                        ),
                    )
                if on_listening is not None:
                    ui_url = (
                        None if ui is None else _url(config, config.ui_addr, ui.port) + config.ui_base_path
                    )
                    on_listening(api_url, ui_url)
                async for number in signals:
                    log.log(LogEvent.SERVER_STOPPING, signal=signal.Signals(number).name)
                    break


async def _compare_secrets(config: Config, system: System) -> None:
    """Have this server and the others on its database notice if their secrets differ.

    None refuses to start, because secrets are changed at one server after the other.
    """
    if system.engine.listen is not None:
        secret = await trio.to_thread.run_sync(SecretCheck, config.auth_secret)
        system.broker.known_processes.secret = secret


def _database(config: Config) -> str:
    """The database in which messages are stored, for the log: without a password."""
    if config.db_url is not None:
        return "PostgreSQL"
    return "in memory, nothing is kept" if config.memory else str(config.db_path)


def stop_signals() -> list[signal.Signals]:
    """The signals that stop the server; SIGHUP only if it is not ignored, so that nohup works."""
    always = [signal.SIGTERM, signal.SIGINT]
    return always if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [*always, signal.SIGHUP]


def _url(config: Config, address: HostPort, port: int) -> str:
    """The URL of an address, for clients on this machine."""
    host = "localhost" if address.host in ("", "0.0.0.0", "::") else address.host
    return f"{'http' if config.tls_cert is None else 'https'}://{HostPort(host, port)}"


def _tune_collector() -> None:
    """Exclude the objects that exist at the start from garbage collections, and run these less often.

    The hot path makes no reference cycles, so collections find almost nothing. At 128 connections they took a tenth of
    the throughput and doubled the 99th percentile.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*limits.COLLECTOR_THRESHOLDS)


async def _listen_all(config: Config) -> tuple[list[socket.socket], list[socket.socket]]:
    """The listening sockets of the API and of the UI; none for a UI that is not served."""
    try:
        api = await _listen(config.api_addr)
    except StartFailed as error:
        raise StartFailed(f"{error}; FORQ_API_ADDR names another address, port 0 any free one") from None
    if not config.ui_enabled:
        return api, []
    try:
        return api, await _listen(config.ui_addr)
    except StartFailed as error:
        for listener in api:
            listener.close()
        raise StartFailed(
            f"{error}, for the admin UI: FORQ_UI_ADDR names another address, FORQ_UI_ENABLED=false does without"
        ) from None


async def _listen(address: HostPort) -> list[socket.socket]:
    try:
        return await open_listeners(address.host, address.port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise StartFailed(f"cannot listen on {address}: {reason}") from None


def database_url(config: Config) -> str:
    """The URL of the database that the server opens."""
    return config.db_url or (MEMORY_URL if config.memory else f"{SQLITE_PREFIX}{config.db_path}")


async def _open_engine(config: Config) -> Engine:
    settings = EngineSettings(
        queue_ttl_ms=config.queue_ttl_hours * limits.HOUR_MS,
        dlq_ttl_ms=config.dlq_ttl_hours * limits.HOUR_MS,
        history=config.history == "on",
        events=config.events == "on",
    )
    others = OtherUrls(config.db_listen_url, config.db_replica_url)
    return await trio.to_thread.run_sync(
        open_engine, database_url(config), settings, config.durability, others
    )


def _backup_settings(config: Config) -> BackupSettings:
    return BackupSettings(
        config.backup_dir, config.backup_every_hours, config.backup_keep, config.disk_reserve_mb * limits.MIB
    )


def _sweep_seconds(config: Config) -> Mapping[SweepKind, float]:
    if not config.sasquatch_enabled:
        return INTERVAL_SECONDS
    return intervals(
        failed_seconds_max=config.sasquatch_poison_cleanup_interval,
        expired_seconds_max=min(
            config.sasquatch_retention_cleanup_interval, config.sasquatch_dedup_cleanup_interval
        ),
    )


@asynccontextmanager
async def _serving(
    server: Server, ui: "RunningUi | None", system: System, beside: Beside | None
) -> AsyncIterator[None]:
    """Serve while the body runs, then drain. The process exits after FORCED_EXIT_SECONDS at the latest."""
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve)
        if ui is not None:
            await nursery.start(ui.run)
        async with nullcontext() if beside is None else beside(system.broker):
            yield
        if ui is not None:
            ui.stop()
        last_resort = Timer(FORCED_EXIT_SECONDS, os._exit, (FORCED_EXIT_CODE,))
        last_resort.daemon = True
        last_resort.start()
        server.stop_accepting()
        server.finish_connections()  # before the next line, which answers long polls
        system.writer.drain_receivers()
        if not await server.drain(limits.SHUTDOWN_SECONDS_MAX):
            log.log(LogEvent.SHUTDOWN_FORCED)


def _build_server(
    config: Config,
    system: System,
    families: ReadFamilies,
    listeners: list[socket.socket],
    connections_max: int,
) -> Server:
    """families: of what is served."""
    admit, handler = _build_handler(config, system, families)
    refuse = answering_as_sqs(transport_answer) if config.sqs_enabled else transport_answer
    refuse = counting_refusals(refuse, system.counters)
    if config.log_level == "debug":
        admit, handler = logging_refused_heads(admit), logging_requests(handler)
        refuse = logging_refusals(refuse)
    return Server(
        handler,
        listeners,
        TransportConfig(
            http2=config.h2c == "on",
            hsts=config.env == "pro",
            body_bytes_max=_body_bytes_max(config),
            connections_max=connections_max,
        ),
        admit=admit,
        on_error=_log_request_error,
        refuse=refuse,
        ssl_context=_tls_context(config, http2=config.h2c == "on"),
    )


def _build_ui(
    config: Config,
    system: System,
    api: Server,
    listeners: list[socket.socket],
    api_url: str,
    connections_max: int,
    link: "OneTimeLink | None",
) -> "RunningUi":
    # Only here, because its libraries take a third of the time in which a server without it starts.
    from forq_trio.ui.start import build_ui

    tls = _tls_context(config, http2=False)
    return build_ui(
        config, system, lambda: api.connections, listeners, tls, api_url, _version(), connections_max, link
    )


def _build_handler(config: Config, system: System, families: ReadFamilies) -> tuple[Admit, Handler]:
    throttle = Throttle()
    access = Access(
        config.auth_secret, system.broker.keys, throttle, trust_proxy_headers=config.trust_proxy_headers
    )
    about = About(_version(), system.engine.facts().name.lower(), system.engine.durability)
    health = HealthCheck(
        system.broker,
        about,
        replica=lambda: system.engine.facts().replica,
        database=lambda: system.database.state,
        other_secrets=lambda: system.broker.known_processes.other_secrets,
    )
    routes = [
        *forq_routes(
            system.broker,
            access,
            system.monitor,
            backups=system.backups,
            require_receipt=config.require_receipt,
        ),
        *health.routes(),
    ]
    if config.metrics_enabled and config.metrics_auth_secret is not None:
        metrics_gate = ApiKeyGate(
            config.metrics_auth_secret, throttle, trust_proxy_headers=config.trust_proxy_headers
        )
        routes += MetricsPage(system.owners(families)).routes(metrics_gate)
    routes += openapi_routes(routes, _version())
    if config.sasquatch_enabled:
        routes += sasquatch_routes(
            system.broker,
            system.clock,
            _sasquatch_options(config),
            access if config.sasquatch_auth else None,
            _version(),
        )
    if config.sqs_enabled:
        account = SqsAccount(
            config.sqs_account,
            config.sqs_region,
            "http" if config.tls_cert is None else "https",
            config.trust_proxy_headers,
        )
        routes += sqs_routes(system.broker, account, access if config.sqs_auth else None, answer_error)
    router = HttpRouter(routes, answer_error)
    handler = counting_rejections(router, system.counters, error_body_start(ContentTooLarge))
    if sdk_is_set_up():
        handler = _traced(handler, system)
    return counting_refused_heads(router.admit, system.counters), handler


def _traced(handler: Handler, system: System) -> Handler:
    """A handler whose requests have spans, down to their commits."""
    from forq_trio.broker.tracing import trace
    from forq_trio.http.tracing import tracing_requests

    trace(system.broker, served=True)
    return tracing_requests(handler)


def _sasquatch_options(config: Config) -> SasquatchOptions:
    names = SasquatchOptions.__struct_fields__
    return SasquatchOptions(**{name: getattr(config, f"sasquatch_{name}") for name in names})


def _body_bytes_max(config: Config) -> int:
    """The bound of the transport on bodies: the largest of the dialects' own bounds."""
    if not config.sasquatch_enabled:
        return limits.BODY_BYTES_MAX
    return max(limits.BODY_BYTES_MAX, _sasquatch_options(config).body_bytes_max)


def _tls_context(config: Config, *, http2: bool) -> ssl.SSLContext | None:
    if config.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(config.tls_cert, config.tls_key)
    context.set_alpn_protocols(["h2", "http/1.1"] if http2 else ["http/1.1"])
    return context


def _log_request_error(error: Exception) -> None:
    log.log(LogEvent.REQUEST_FAILED, exception=error)


def _version() -> str:
    return installed_version() or "unknown"
