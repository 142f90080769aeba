"""A standalone cluster of two workers, a process each: executors know nothing but their environment."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

import pyspark
import pytest

from spark.conftest import MISSING, has_java
from support.needs import lacks
from support.real_server import SECRET

pytestmark = [pytest.mark.process, pytest.mark.tier2]

BIN = Path(pyspark.__file__).parent / "bin"
MESSAGES = 20_000


@pytest.fixture(scope="module")
def master(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The master's address, and the directory of the workers."""
    if not has_java():
        lacks("Spark", MISSING)
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        address = stack.enter_context(
            started(directory, "master.Master", r"at (spark://127\.0\.0\.1:\d+)", "--port", "0")
        )
        for _ in range(2):
            share = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work"))
            stack.enter_context(
                started(directory, "worker.Worker", r"registered with master (\S+)", *share, address)
            )
        yield address, directory


@contextmanager
def started(directory: Path, name: str, said: str, *arguments: str) -> Iterator[str]:
    """A process of the cluster, once it has said this; the first group of it."""
    command = [
        BIN / "spark-class",
        f"org.apache.spark.deploy.{name}",
        "--host",
        "127.0.0.1",
        "--webui-port",
        "0",
    ]
    process = subprocess.Popen(
        [*command, *arguments], env=environment(), cwd=directory, text=True, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines: list[str] = []
    # Read to the end, or the process would wait for somebody who reads what it says.
    reading = Thread(target=lambda: lines.extend(process.stderr))
    try:
        found = None
        for line in process.stderr:
            lines.append(line)
            found = re.search(said, line)
            if found:
                break
        assert found, f"{name} did not start: {''.join(lines)}"
        reading.start()
        yield found[1]
    finally:
        process.kill()
        process.wait()
        if reading.ident:
            reading.join()
        process.stderr.close()


def environment() -> dict[str, str]:
    """What a cluster's processes get: the Python that has forq-trio. The token is the driver's, who hands it on."""
    return {
        **{
            name: value
            for name, value in os.environ.items()
            if name not in ("FORQ_AUTH_SECRET", "FORQ_TOKEN")
        },
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def test_two_workers_drain_a_queue_and_fill_another(master, shared, tmp_path) -> None:
    address, workers = master
    contents = [f"größe {number}" for number in range(MESSAGES)]
    shared.send("cluster-source", contents)
    job = Path(__file__).with_name("cluster_job.py")
    done = subprocess.run(
        [
            BIN / "spark-submit",
            "--master",
            address,
            job,
            shared.url,
            "cluster-source",
            "cluster-target",
            tmp_path,
        ],
        env=environment() | {"FORQ_AUTH_SECRET": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(shared.contents("cluster-target")) == sorted(contents)
    assert shared.contents("cluster-source") == []
    assert len(list(workers.glob("work/app-*/*"))) == 2
