"""Processes of Spark that run beside the tests: of a cluster, or a server of Spark Connect."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pyspark
from pyspark import SparkContext

from spark.support import Server
from support.real_server import SECRET

BIN = Path(pyspark.__file__).parent / "bin"
ROOT = Path(__file__).parents[2]
CONF = Path(__file__).with_name("conf")
ARCHIVE = "FORQ_TEST_SPARK_ARCHIVE"
"""The variable that names an archive of classes, which archive.py has made."""


def submit_arguments(*options: str) -> str:
    """Of `spark-submit`: what conf/spark-defaults.conf has. options: more ones of the driver's Java.

    A Spark that reads the file has its directory among its classes, and then takes none from an archive.
    """
    settings = dict(
        line.split(maxsplit=1)
        for line in (CONF / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    settings["spark.driver.extraJavaOptions"] += "".join(f" {option}" for option in options)
    return " ".join(f"--conf '{name}={value.strip()}'" for name, value in settings.items()) + " pyspark-shell"


def end_java() -> None:
    """End the process of Spark, and close the sockets to it; Spark itself leaves both to the end of this process."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


@contextmanager
def started(directory: Path, said: str, program: str, *arguments: str) -> Iterator[str]:
    """A program of Spark's, once it has said this; the first group of it."""
    process = subprocess.Popen(
        [BIN / program, *arguments], env=environment(), cwd=directory, text=True, stderr=subprocess.PIPE
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
        assert found, f"{program} did not start: {''.join(lines)}"
        reading.start()
        yield found[1]
    finally:
        process.kill()
        process.wait()
        if reading.ident:
            reading.join()
        process.stderr.close()


def environment() -> dict[str, str]:
    """What these get: the Python that has forq-trio, and no secret."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FORQ_", "PYSPARK_", "SPARK_"))
    }
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    return kept | own | {"SPARK_CONF_DIR": str(CONF)}


def everything(
    server: Server, queue: str, folder: Path, *, python: str = sys.executable, **more: str
) -> dict[str, Any]:
    """What everything_job.py found, with a secret that only its own process has. more: of its environment."""
    server.send(queue, ["gone"])
    (message,) = server.client.receive(queue)
    server.client.ack(queue, [message.receipt])
    done = subprocess.run(
        [python, Path(__file__).with_name("everything_job.py"), server.url, queue, folder],
        cwd=folder,
        env=environment() | {"FORQ_AUTH_SECRET": SECRET} | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check_all(found: dict[str, Any]) -> None:
    """Nothing failed, and as much was read as there was."""
    assert {name: each for name, each in found.items() if type(each) is str} == {}
    assert [found[name] for name in ("snapshot", "events", "history", "table")] == [1, 4, 1, 3]
    assert found.get("insert", 4) == found.get("setting", 4) == found.get("drain", 4) == 4
    assert found["archived"] == found["archive"]["events"] == found["report"] > 4
    assert found["replay"] == found["archive"]["history"] <= found["dead_letters"]
