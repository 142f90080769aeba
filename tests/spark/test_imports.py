"""What a process of Spark imports for a read or a write of the data source: little, for Spark waits ten seconds for it.

Spark starts such a process for every stream, and one for every task that no earlier one is left for.
"""

import json
import subprocess
import sys

import pytest

from spark.processes import ROOT

NEVER = {
    "anyio",
    "email",
    "http.client",
    "httpx",
    "ssl",
    "trio",
    "urllib.request",
    # Whole clients, and what only they need of the API.
    "forq_trio.client.sync",
    "forq_trio.client.tls",
    "forq_trio.model.durations",
    "forq_trio.model.outboxes.types",
    "forq_trio.model.server.processes",
    "forq_trio.model.queues.settings",
    "forq_trio.model.dead_letters.redrives",
    "forq_trio.model.schedules.types",
    "forq_trio.model.dead_letters.searches",
    "forq_trio.model.workers.types",
    "forq_trio.model.dead_letters.bodies",
    "forq_trio.model.messages.bodies",
    "forq_trio.model.messages.receipts",
    # What is the server's.
    "forq_trio.model.commands",
    "forq_trio.broker",
    "forq_trio.storage",
    "forq_trio.http",
}
HOUSE_MODULES_MAX = 115
"""Before there was a client of pipelines alone there were 127."""

PROGRAM = """
import json, sys
from pyspark.sql.types import StringType, StructField, StructType
before = set(sys.modules)
from pyspark_forq import DefaultSource
from pyspark_forq.errors import ForqDataSourceError

options = {"url": "http://localhost:1", "token": "t", "queue": "q", "retrySeconds": "0"}
schema = StructType([StructField("content", StringType())])


def drain():
    source = DefaultSource({**options, "consumer": "c"})
    source.streamReader(source.schema()).initialOffset()


def follow():
    source = DefaultSource({**options, "mode": "history", "startingOffsets": "latest"})
    source.streamReader(source.schema()).initialOffset()


def read():
    source = DefaultSource(options)
    source.reader(source.schema()).partitions()


def read_log():
    source = DefaultSource({**options, "mode": "events"})
    source.reader(source.schema()).partitions()


def write():
    writer = DefaultSource(options).writer(schema, False)
    from pyspark_forq.writing import Stage, TaskStages

    writer.commit([TaskStages(None, 0, (Stage("q", "s", 1),))])



try:
    globals()[sys.argv[1]]()
except ForqDataSourceError as problem:
    assert "no server can be reached" in str(problem), problem
    print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize(
    "use",
    [
        "drain",
        "write",
        *(pytest.param(use, marks=pytest.mark.tier2) for use in ("follow", "read", "read_log")),
    ],
)
def test_a_process_of_the_source_imports_a_client_of_pipelines_and_no_more(use: str) -> None:
    """Also where it has asked the server, and said why no answer came."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, use], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    imported = set(json.loads(done.stdout))
    assert imported & NEVER == set()
    house = {name for name in imported if name.partition(".")[0] in ("forq_trio", "pyspark_forq")}
    assert 50 < len(house) <= HOUSE_MODULES_MAX, sorted(house)
