"""How long is a server away that was killed? Start to first answers on a large file, with the log that kill -9 left."""

import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from bench.scenarios.backlog import send_all
from bench.scenarios.context import Context, Row
from bench.targets.servers import ServerError, forq_server_on


def restart(context: Context) -> list[Row]:
    """Kill -9 a server on a large file, start it again: seconds until it is healthy and hands out a message."""
    settings, queue = context.settings, context.queue("restart")
    messages = settings.backlog_ready + settings.backlog_delayed
    healthy, serving, log_mib = [], [], []
    with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=context.data_dir) as directory:
        database = Path(directory) / "forq.db"
        with forq_server_on(database, context.durability, kill=True) as server:
            send_all(context, server, queue, messages)
        for _ in range(settings.rounds):
            log_mib.append(database.with_name("forq.db-wal").stat().st_size / 2**20)
            started = perf_counter()
            with forq_server_on(database, context.durability, kill=True) as server:
                healthy.append(perf_counter() - started)
                if server.api.exchange(server.api.receive(queue)).status != 200:
                    raise ServerError("a restarted server handed out no message")
                serving.append(perf_counter() - started)
                send_all(context, server, queue, settings.restart_messages)
    return [
        {
            "messages_stored": messages,
            "log_mib": max(log_mib),
            "healthy_p50_ms": statistics.median(healthy) * 1_000,
            "serving_p50_ms": statistics.median(serving) * 1_000,
            "serving_max_ms": max(serving) * 1_000,
        }
    ]
