"""Runs a soak: a server and a yardstick on the same disk, all clients in one loop, a record for each second."""

import random
import socket
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Literal

from bench.load.generator import Address, Load
from bench.report import machine
from bench.scenarios.handoff import Arrivals
from bench.soak import sasquatch, traffic
from bench.soak.caretaker import caretaking
from bench.soak.record import Columns, Meters
from bench.soak.traffic import Calls, Consumers, Senders, repeating
from bench.soak.verdict import judge
from bench.soak.watch import Depths, Watch
from bench.targets.servers import KEY, METRICS_KEY, Server, ServerError, forq_server_on, script_server

SENDERS = 16
SINGLE_CONSUMERS = 4
BATCH_CONSUMERS_EACH = 2
SASQUATCH_SHARE = 0.05
LOOK_SECONDS = 1.0
# A crowd of reads at the same time makes the server open all its readers, with their caches, before the second quarter.
CROWD, CROWD_SECONDS = 16, 5.0
YARDSTICK_SECONDS = 0.05
CARE_SECONDS = 0.25
SAY_EVERY_SECONDS = 60
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Soak:
    """seconds: how long. rate: requests a second that senders make; consumers make one to two more for each."""

    seconds: int = 1_800
    rate: float = 150.0
    seed: int = 0
    durability: Literal["full", "normal"] = "full"
    fsync_probes: int = 200


class HangUps:
    """A consumer that waits on an empty queue, and disconnects without an answer."""

    def __init__(self, address: Address, payload: bytes) -> None:
        self._address = address
        self._payload = payload
        self._socket: socket.socket | None = None

    def next(self) -> None:
        """Hang up, and call again from a new connection."""
        self.close()
        self._socket = socket.create_connection(self._address)
        self._socket.sendall(self._payload)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def run(soak: Soak, data_dir: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Carry out a soak on a new database below `data_dir`, and judge it. Raises ServerError, OSError."""
    about = {**machine.describe(data_dir, soak.fsync_probes), "server": "forq-trio", "soak": asdict(soak)}
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="forq-soak-", dir=data_dir))
        database = Path(directory) / "forq.db"
        server = stack.enter_context(forq_server_on(database, soak.durability))
        yardstick = stack.enter_context(script_server("fsync_204.py", directory))
        about["durability"] = server.durability
        _set_queues(server)
        columns, meters = _measure(soak, server, yardstick.api.address, database, say)
    return {
        "about": about,
        "requests": meters.requests,
        "errors": dict(meters.errors),
        "verdict": [asdict(judgement) for judgement in judge(columns)],
        "columns": columns,
    }


def _set_queues(server: Server) -> None:
    calls = Calls(server.api.url, KEY)
    for queue, settings in traffic.SETTINGS.items():
        response = server.api.exchange(calls.queue("PUT", queue, "/settings", settings))
        if response.status != 200:
            raise ServerError(f"the settings of {queue} are refused: {response.status} {response.body!r}")


def _measure(
    soak: Soak, server: Server, yardstick: Address, database: Path, say: Callable[[str], None]
) -> tuple[Columns, Meters]:
    """One record for each second, on a timetable of whole seconds."""
    assert server.pid is not None
    calls, meters, depths, rng = Calls(server.api.url, KEY), Meters(), Depths(), random.Random(soak.seed)
    senders = Senders(calls, meters, rng)
    hang_ups = HangUps(server.api.address, calls.queue("GET", traffic.SILENT, "/messages"))
    watch = Watch(server.pid, database)
    columns: Columns = {}
    with ExitStack() as stack:
        load = stack.enter_context(Load(server.api.address))
        stack.callback(hang_ups.close)
        _add_clients(load, soak, senders, calls, meters, depths, rng)
        load.add(repeating(calls("GET", "/"), meters.yardstick, YARDSTICK_SECONDS), yardstick)
        begin_ns = before_ns = perf_counter_ns()
        for second in range(1, soak.seconds + 1):
            load.add(senders.visit())
            hang_ups.next()
            load.run(max(begin_ns + second * SECOND_NS - perf_counter_ns(), 0) / 1e9)
            if not load.open_connections:
                raise ServerError("the server closed all connections")
            now_ns = perf_counter_ns()
            seconds, before_ns = (now_ns - before_ns) / 1e9, now_ns
            record = {**meters.take(seconds), **watch.look(seconds), **depths.latest()}
            for name, value in record.items():
                columns.setdefault(name, []).append(value)
            if second % SAY_EVERY_SECONDS == 0:
                say(f"{second // 60} min: " + ", ".join(f"{name} {value}" for name, value in record.items()))
    return columns, meters


def _add_clients(
    load: Load, soak: Soak, senders: Senders, calls: Calls, meters: Meters, depths: Depths, rng: random.Random
) -> None:
    arrivals = Arrivals(soak.rate)
    load.add_all(senders.conversation(arrivals) for _ in range(SENDERS))
    consumers = Consumers(calls, meters, rng)
    load.add_all(consumers.single() for _ in range(SINGLE_CONSUMERS))
    for queue in traffic.CONSUMED:
        load.add_all(consumers.several(queue) for _ in range(BATCH_CONSUMERS_EACH))
    rounds = Arrivals(soak.rate * SASQUATCH_SHARE)
    for queue in sasquatch.QUEUES:
        load.add(sasquatch.Sasquatch(calls, queue, meters, rng).conversation(rounds))
    care, looks = meters.timed("dead letters"), meters.timed("look")
    load.add(caretaking(calls, (traffic.PLAIN, *traffic.CONSUMED), care, CARE_SECONDS))
    load.add(repeating(calls("GET", "/api/v1/queues"), looks, LOOK_SECONDS, depths.note))
    load.add(repeating(calls("GET", "/healthcheck"), looks, LOOK_SECONDS))
    peek = calls.queue("GET", traffic.BOUNDED, "/peek?limit=100")
    load.add_all(repeating(peek, looks, CROWD_SECONDS) for _ in range(CROWD))
    metrics = Calls(calls.url, METRICS_KEY)
    load.add(repeating(metrics("GET", "/metrics"), looks, LOOK_SECONDS))
