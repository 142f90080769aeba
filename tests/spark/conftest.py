"""One Spark session for all of these tests. Where there is no Java 17 they are skipped; under CI=true they fail."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from zlib import crc32

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from pyspark.sql import SparkSession

from pyspark_forq import server, session
from spark.processes import ARCHIVE, end_java, submit_arguments
from spark.support import Server, running
from support.needs import lacks
from support.real_server import SECRET

JAVA_MIN = 17
# Spark has its Python processes import pyspark from a zip archive, out of which everything is compiled each time: 1.6 s
# of processor time instead of 0.5 s, for a process that each query starts. This Python takes the installed one.
PYTHON = """#!/bin/sh
IFS=:
kept=
for place in $PYTHONPATH; do
  case $place in
    *.zip) ;;
    *) kept="${kept:+$kept:}$place" ;;
  esac
done
PYTHONPATH=$kept exec "$FORQ_TEST_PYTHON" "$@"
"""
MISSING = f"Java {JAVA_MIN} (on Debian: apt install openjdk-17-jre-headless)"


def find_java() -> str | None:
    """The program that Spark would run."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(f"{home}/bin/java" if home else "java")


def has_java() -> bool:
    java = find_java()
    if java is None:
        return False
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    return version is not None and int(version[1]) >= JAVA_MIN


@pytest.fixture(scope="session", autouse=True)
def _closed_clients() -> Iterator[None]:
    """Closes the data source's own clients in this process, which live as long as their process."""
    yield
    while server._clients:
        server._clients.popitem()[1].close()


@pytest.fixture(scope="session", autouse=True)
def _spark_defaults() -> Iterator[None]:
    """Starts every Spark with conf/spark-defaults.conf, and with classes from the archive, where there is one."""
    archive = os.environ.get(ARCHIVE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYSPARK_SUBMIT_ARGS",
            submit_arguments(*([f"-XX:SharedArchiveFile={archive}"] if archive else [])),
        )
        yield


@pytest.fixture(scope="session")
def java() -> str:
    """The program."""
    if not has_java():
        lacks("Spark", MISSING)
    return str(find_java())


@pytest.fixture(scope="session")
def spark(java, tmp_path_factory) -> Iterator[SparkSession]:
    """This worker's Spark, with two cores; a task is tried twice."""
    settings = {
        "spark.master": "local[2,2]",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    python = tmp_path_factory.mktemp("python") / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORQ_AUTH_SECRET", SECRET)  # Spark's processes inherit these
        patch.setenv("PYSPARK_PYTHON", str(python))
        patch.setenv("FORQ_TEST_PYTHON", sys.executable)
        started = session("tests", **settings)
    yield started
    started.stop()
    end_java()


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Iterator[Server]:
    """One server for the tests that leave it alone."""
    with running(tmp_path_factory.mktemp("server") / "forq.db") as server:
        yield server


@pytest.fixture
def queue(request) -> str:
    """A queue that only this test has."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name)
    return f"{name[:40]}-{crc32(name.encode()):08x}"
