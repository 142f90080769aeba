"""The pipelines on S3 and HDFS: real servers of both, here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from deltalake.transaction import AddAction

from pyspark_forq.pipelines.archive_table import ARCHIVED, ArchiveError, ArchiveTable
from pyspark_forq.pipelines.stores import storage_options
from pyspark_forq.rows import arrow_schema
from spark.archives import OWNER
from spark.event_frames import SCHEMA
from support.needs import lacks
from support.real_server import environment

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("store_job.py")
LOCAL = {
    "spark.master": "local[2]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
KEYS = {"access.key": "access", "secret.key": "secret", "endpoint.region": "us-east-1"}
NAMENODE = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """A server of S3 with the bucket `lake`; what Spark has to be told."""
    server = pytest.importorskip("moto.server", reason="moto is not here (pip install -e '.[dev]')")
    import boto3

    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        aws_access_key_id="access",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="lake")
    client.close()
    told = KEYS | {"endpoint": f"http://{host}:{port}", "path.style.access": "true"}
    yield {f"spark.hadoop.fs.s3a.{name}": value for name, value in told.items()}
    running.stop()


@contextmanager
def told(spark, settings: dict[str, str]) -> Iterator[None]:
    """While Spark has these settings."""
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_of_many_writers_at_once_on_s3_one_wins(spark, s3) -> None:
    writers = 8
    start = Barrier(writers)
    with told(spark, s3):
        ArchiveTable(spark, "s3a://lake/rivals", "events").belong_to(
            arrow_schema(spark.createDataFrame([], SCHEMA).schema), OWNER
        )
        tables = [ArchiveTable(spark, "s3a://lake/rivals", "events") for _ in range(writers)]

    def write(number: int) -> bool:
        start.wait(60)
        file = AddAction(f"batch-{number}/x.parquet", 1, {"date": "2026-11-23"}, 0, True, '{"numRecords": 1}')
        try:
            tables[number].commit(ARCHIVED, None, number + 1, [file])
        except ArchiveError:
            return False
        return True

    with ThreadPoolExecutor(writers) as threads:
        won = list(threads.map(write, range(writers)))
    assert won.count(True) == 1
    with told(spark, s3):
        table = ArchiveTable(spark, "s3a://lake/rivals", "events")
    assert table.number(ARCHIVED) == won.index(True) + 1
    assert [file.path for file in table.files()] == [f"batch-{won.index(True)}/x.parquet"]


@pytest.mark.parametrize(
    ("place", "settings", "options"),
    [
        ("/local", {"fs.s3a.access.key": "a"}, {}),
        (
            "s3a://lake/x",
            {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_ALLOW_HTTP": "true"},
        ),
        (
            "s3a://lake/x",
            {
                "fs.s3a.endpoint": "s3.example",
                "fs.s3a.access.key": "all",
                "fs.s3a.bucket.lake.access.key": "its",
            },
            {"AWS_ENDPOINT_URL": "https://s3.example", "AWS_ACCESS_KEY_ID": "its"},
        ),
        (
            "abfss://box@me.dfs.core.windows.net/x",
            {"fs.azure.account.key.me.dfs.core.windows.net": "k", "fs.azure.account.key.you.dfs.net": "no"},
            {"AZURE_STORAGE_ACCOUNT_KEY": "k"},
        ),
        (
            "gs://lake/x",
            {"fs.gs.auth.service.account.json.keyfile": "/key.json"},
            {"GOOGLE_SERVICE_ACCOUNT": "/key.json"},
        ),
    ],
)
def test_the_driver_reaches_a_store_by_the_settings_of_spark(spark, place, settings, options) -> None:
    with told(spark, {f"spark.hadoop.{name}": value for name, value in settings.items()}):
        assert storage_options(spark, place) == options


def packages() -> dict[str, str]:
    """The settings of docs/spark.md that bring what Spark needs for S3."""
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    return dict(re.findall(r"--conf (spark\.jars\.[a-z]+)=(\S+)", text))


@contextmanager
def hdfs(java: str, place: Path) -> Iterator[str]:
    """A name node and a data node; their URI."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    (api,) = jars.glob("hadoop-client-api-*.jar")
    version = api.stem.removeprefix("hadoop-client-api-")
    pom = JOB.with_name("hdfs.xml").read_text(encoding="utf-8").replace("HADOOP_VERSION", version)
    (place / "pom.xml").write_text(pom, encoding="utf-8")
    fetch = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"]
    try:
        subprocess.run(fetch, cwd=place, check=True, timeout=300)
    except (OSError, subprocess.CalledProcessError):
        lacks("HDFS", "Maven, and what it fetches (on Debian: apt install maven)", installed=False)
    details = place / "details.json"
    os.mkfifo(details)
    with (
        (place / "log").open("w") as log,
        subprocess.Popen(
            [
                java,
                "-cp",
                f"{jars}/*:{place}/jars/*",
                NAMENODE,
                "-nomr",
                "-format",
                "-writeDetails",
                str(details),
            ],
            cwd=place,
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield f"hdfs://127.0.0.1:{json.loads(details.read_text())['namenode_port']}"
        finally:
            process.kill()


@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.parametrize("store", ["s3", "hdfs"])
def test_the_pipelines_on_a_store(java, shared, queue, tmp_path, request, store) -> None:
    shared.send(queue, ["one", "two", "three", "four"])
    found = shared.client.receive(queue, max_messages=4)
    shared.client.ack(queue, [message.receipt for message in found])
    if store == "s3":
        check(shared, queue, "s3a://lake", request.getfixturevalue("s3") | packages())
    else:
        with hdfs(java, tmp_path) as place:
            check(shared, queue, place, {})


def check(server, queue: str, place: str, settings: dict[str, str]) -> None:
    """Run the program, and look at what it found."""
    done = subprocess.run(
        [sys.executable, str(JOB), place, server.url, queue, json.dumps(LOCAL | settings)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=500,
        check=False,
    )
    if "unresolved dependency" in done.stdout + done.stderr:
        lacks("S3", "the packages of Maven Central", installed=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    rival = "another run is at work"
    assert [rival if rival in words else words for words in found.pop("said")] == ["killed", rival] * 2
    assert found == {"before": 12, "late": 12, "after": 14, "loaded": [2, 0], "sent": 4}
    assert sorted(server.contents(f"{queue}-again")) == ["four", "one", "three", "two"]
