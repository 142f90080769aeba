"""Spark Connect: a server in a process of its own, and programs that have no JVM and nothing of its environment."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import pytest

from spark.processes import check_all, environment, everything, started
from support.needs import lacks
from support.real_server import SECRET

pytestmark = [pytest.mark.process, pytest.mark.tier2]


@pytest.fixture(scope="module")
def remote(java, tmp_path_factory) -> Iterator[str]:
    """The server's address."""
    if importlib.util.find_spec("grpc_status") is None:
        lacks("Spark Connect", "its packages (pip install 'pyspark[connect]')")
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
    }
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    program = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]")
    said = r"Spark Connect server started at: .*?(\d+)$"
    with started(tmp_path_factory.mktemp("connect"), said, "spark-submit", *program, *confs) as port:
        yield f"sc://127.0.0.1:{port}"


def test_everything_once_with_a_driver_elsewhere(remote, shared, queue, tmp_path) -> None:
    """The server does not know the secret: the program's session hands it over."""
    found = everything(shared, queue, tmp_path, SPARK_REMOTE=remote)
    del found["version"]
    check_all(found)


def test_the_commands_of_pipelines(remote, shared, queue, tmp_path) -> None:
    (tmp_path / "lines.txt").write_text("one\ntwo\n", encoding="utf-8")
    command = ("-m", "forq_trio.cli", "pipeline", "load", tmp_path / "lines.txt", queue)
    done = subprocess.run(
        [sys.executable, *command, "--conf", f"spark.remote={remote}", "--url", shared.url],
        env=environment() | {"FORQ_AUTH_SECRET": SECRET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "2 rows read, 2 messages sent\n"), done.stderr
    assert done.stderr == ""
