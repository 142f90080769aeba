"""The data source from end to end: Spark on two cores, with the server beside it on the same ones."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

from bench.scenarios.context import Context, Row
from bench.scenarios.pipelines import cpu_seconds
from bench.targets.servers import KEY, ROOT, ServerError, forq_server


def spark(context: Context) -> list[Row]:
    """Publish a data frame, drain it into nothing and into Parquet, archive the events, by Spark on local[2]."""
    if find_spec("pyspark") is None:
        raise ServerError("Spark is not installed (the extra forq-trio[spark])")
    rows = []
    for size in context.settings.pipeline_bytes:
        with forq_server(context.data_dir, context.durability, {"FORQ_EVENTS": "on"}) as server:
            count, queue = context.settings.spark_messages, context.queue("spark")
            command = [sys.executable, "-m", "bench.load.spark_work"]
            before = cpu_seconds(server)
            done = subprocess.run(
                [*command, server.api.url, queue, str(size), str(count)],
                cwd=ROOT,
                env={**os.environ, "FORQ_AUTH_SECRET": KEY},
                text=True,
                stdout=subprocess.PIPE,
            )
            if done.returncode:
                raise ServerError("Spark failed")
            found = json.loads(done.stdout.splitlines()[-1])
            server_seconds = cpu_seconds(server) - before
        events = found.pop("events")
        rows.append(
            {
                "bytes": size,
                "count": count,
                **{
                    f"{name}_per_second": round((events if name == "archive" else count) / seconds, 1)
                    for name, seconds in found.items()
                },
                "server_cpu_s": round(server_seconds, 2),
                "seconds": round(sum(found.values()) + found["publish"], 1),
            }
        )
    return rows
