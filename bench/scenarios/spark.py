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
    """Publish a data frame, drain it into nothing and into Parquet, read that, archive events, by Spark on local[2].

    The server keeps events only where they are archived.
    """
    if find_spec("pyspark") is None:
        raise ServerError("Spark is not installed (the extra spark)")
    return [
        _measure(context, work, size, settings)
        for size in context.settings.pipeline_bytes
        for work, settings in (("drain", {}), ("archive", {"FORQ_EVENTS": "on"}))
    ]


def _measure(context: Context, work: str, size: int, settings: dict[str, str]) -> Row:
    count, queue = context.settings.spark_messages, context.queue("spark")
    with forq_server(context.data_dir, context.durability, settings) as server:
        before = cpu_seconds(server)
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "bench.load.spark_work",
                work,
                server.api.url,
                queue,
                str(size),
                str(count),
            ],
            cwd=ROOT,
            env={**os.environ, "FORQ_AUTH_SECRET": KEY},
            text=True,
            stdout=subprocess.PIPE,
        )
        if done.returncode:
            raise ServerError("Spark failed")
        server_seconds = cpu_seconds(server) - before
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    rows = seconds.pop("events", count)
    return {
        "work": work,
        "bytes": size,
        "count": count,
        **{f"{name}_per_second": round(rows / taken, 1) for name, taken in seconds.items()},
        "server_cpu_s": round(server_seconds, 2),
        "seconds": round(sum(seconds.values()), 1),
    }
