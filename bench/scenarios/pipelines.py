"""Publications and drains of the pipelines' own API, without Spark, and what they do to the sends of others."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.load.generator import Load, Series
from bench.scenarios.context import Context, Row
from bench.scenarios.handoff import Arrivals, pacing
from bench.targets.servers import KEY, ROOT, Server, ServerError

SENDERS = 4
RATE = 500
SLICE_SECONDS = 0.05


def pipelines(context: Context) -> list[Row]:
    """Publish and drain, alone and beside sends at a fixed rate, whose p99 is compared with that of the idle server.

    And with what that becomes when the server has nothing else to do, but other processes keep the cores busy.
    """
    rows: list[Row] = []
    with context.server() as server:
        idle = _sends_alone(context, server)
        rows.append({"work": "nothing", **_sends(idle, idle)})
        with _busy_cores():
            rows.append({"work": "busy cores", **_sends(_sends_alone(context, server), idle)})
        for size in context.settings.pipeline_bytes:
            for beside in (False, True):
                queue = context.queue("pipeline")
                for work in ("publish", "drain"):
                    rows.append(_measure(context, server, work, queue, size, idle if beside else None))
    return rows


def _sends_alone(context: Context, server: Server) -> Series:
    series = Series("send")
    with _paced(context, server, series) as load:
        load.run(context.settings.seconds, warm_up_seconds=context.settings.warm_up_seconds)
    return series


@contextmanager
def _busy_cores() -> Iterator[None]:
    """As many processes as there are cores, which only compute."""
    count = os.cpu_count() or 1
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _measure(context: Context, server: Server, work: str, queue: str, size: int, idle: Series | None) -> Row:
    count = context.settings.pipeline_messages
    with _client(server, work, queue, size, count) as child:
        before = cpu_seconds(server)
        if idle is None:
            phases = _result(child)
            sends: Row = {}
        else:
            series = Series("send")
            with _paced(context, server, series) as load:
                phases = _result(child, lambda: load.run(SLICE_SECONDS))
            sends = _sends(series, idle)
        used = cpu_seconds(server) - before
    seconds = sum(phases.values())
    return {
        "work": work,
        "bytes": size,
        "messages_per_second": round(count / seconds, 1),
        **{f"{phase}_per_second": round(count / taken, 1) for phase, taken in phases.items()},
        "server_cpu_us": round(used / count * 1e6, 1),
        **sends,
    }


@contextmanager
def _paced(context: Context, server: Server, series: Series) -> Iterator[Load]:
    arrivals, queue = Arrivals(RATE), context.queue("others")
    with Load(server.api.address) as load:
        for _ in range(SENDERS):
            load.add(pacing(server.api, queue, context.content, arrivals, series))
        yield load


def _sends(series: Series, idle: Series) -> Row:
    summary = series.latency.summary()
    del summary["count"]
    ratio = summary["p99_ms"] / idle.latency.summary()["p99_ms"]
    return {"sends_per_second": RATE, **summary, "p99_to_idle": round(ratio, 2)}


@contextmanager
def _client(server: Server, work: str, queue: str, size: int, count: int) -> Iterator[subprocess.Popen[str]]:
    """The client's process, ready to begin."""
    command = [
        sys.executable,
        "-m",
        "bench.load.pipeline",
        work,
        server.api.url,
        queue,
        str(size),
        str(count),
    ]
    environment = {**os.environ, "FORQ_AUTH_SECRET": KEY}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdin=pipe, stdout=pipe) as child:
        assert child.stdout is not None
        if child.stdout.readline() != "ready\n":
            raise ServerError(f"the client of {work} did not start")
        yield child


def _result(child: subprocess.Popen[str], meanwhile: Callable[[], object] | None = None) -> dict[str, float]:
    """Let the client begin, and return the seconds of its phases."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.close()
    if meanwhile is None:
        child.wait()
    while meanwhile is not None and child.poll() is None:
        meanwhile()
    if child.returncode:
        raise ServerError("the client failed")
    phases: dict[str, float] = json.loads(child.stdout.readline())
    return phases


def cpu_seconds(server: Server) -> float:
    """What the server's process has used so far; 0 when it is not known."""
    if server.pid is None:
        return 0.0
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
