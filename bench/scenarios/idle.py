"""A thousand consumers waiting on an empty queue: what it costs, and how soon one send wakes exactly one of them."""

import os
import resource
from pathlib import Path
from time import perf_counter_ns
from typing import NamedTuple

from bench.load.api import Api, decode_message
from bench.load.generator import Conversation, Load, Request, Series
from bench.load.histogram import Histogram
from bench.scenarios.context import Context, Row
from bench.scenarios.handoff import STAMP_DIGITS, stamped

WAKE_SECONDS_MAX = 5.0
# After a wake, how long to look for a second one that should not be there.
HERD_SECONDS = 0.02
FILES_BESIDE_CONNECTIONS = 100


class Usage(NamedTuple):
    """The resources of a process, from /proc."""

    cpu_seconds: float
    resident_mib: float
    written_bytes: int


def usage(pid: int) -> Usage:
    """Processor time so far, memory now, and bytes written to storage so far. Raises OSError for no such process."""
    process = Path(f"/proc/{pid}")
    # The command's name, in brackets, may contain spaces: count fields behind it.
    fields = process.joinpath("stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in process.joinpath("status").read_text().splitlines())
    io = dict(line.split(":", 1) for line in process.joinpath("io").read_text().splitlines())
    return Usage(
        cpu_seconds=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        resident_mib=int(status["VmRSS"].split()[0]) / 1024,
        written_bytes=int(io["write_bytes"]),
    )


def waiting(api: Api, queue: str, polls: Series, woken: Histogram) -> Conversation:
    """Long-poll for ever; a message's time since its stamp goes to `woken`, and the message stays unacknowledged."""
    receive = Request(api.receive(queue), polls)
    while True:
        response = yield receive
        if response.status == 200:
            stamp = decode_message(response.body).content[:STAMP_DIGITS]
            woken.record(perf_counter_ns() - int(stamp))


def _sending(api: Api, queue: str, content: str, series: Series) -> Conversation:
    yield Request(api.send(queue, stamped(perf_counter_ns(), content)), series)


def idle(context: Context) -> list[Row]:
    """Parked long polls: processor, memory and writes of the server meanwhile, then the time one send wakes one."""
    settings = context.settings
    _allow_files(settings.idle_connections + FILES_BESIDE_CONNECTIONS)
    polls, sends, woken = Series("receive"), Series("send"), Histogram()
    wakes = []
    with context.server() as server, Load(server.api.address) as load:
        queue = context.queue("idle")
        start = usage(server.pid) if server.pid is not None else None
        for _ in range(settings.idle_connections):
            load.add(waiting(server.api, queue, polls, woken))
        load.run(settings.idle_settle_seconds)
        before = usage(server.pid) if server.pid is not None else None
        seconds = load.run(settings.idle_seconds)
        after = usage(server.pid) if server.pid is not None else None
        for _ in range(settings.idle_wakes):
            already = woken.count
            load.add(_sending(server.api, queue, context.content, sends))
            load.run(WAKE_SECONDS_MAX, answers_max=2)
            load.run(HERD_SECONDS)
            wakes.append(woken.count - already)
    row: Row = {"waiting": settings.idle_connections}
    if start and before and after:
        row |= {
            "cpu_percent_of_a_core": round((after.cpu_seconds - before.cpu_seconds) / seconds * 100, 2),
            "rss_mib": round(after.resident_mib, 1),
            "rss_mib_before": round(start.resident_mib, 1),
            "written_kib": round((after.written_bytes - before.written_bytes) / 1024, 1),
        }
    summary = woken.summary()
    return [
        {
            **row,
            "sends": len(wakes),
            "woke_exactly_one": all(count == 1 for count in wakes),
            **{f"wake_{name}": summary[name] for name in ("p50_ms", "p99_ms", "max_ms")},
            "errors": dict(polls.errors + sends.errors),
        }
    ]


def _allow_files(wanted: int) -> None:
    """Raise this process's limit of open files as far as needed and permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
