"""A standalone cluster of two workers, a process each: executors know nothing but their environment."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from spark.conftest import MISSING, has_java
from spark.processes import BIN, environment, started
from spark.support import Server, running
from support.needs import lacks
from support.real_server import SECRET

pytestmark = [pytest.mark.process, pytest.mark.tier2]

MESSAGES = 20_000


@pytest.fixture(scope="module")
def master(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """The master's address, and the directory of the workers."""
    if not has_java():
        lacks("Spark", MISSING)
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        address = stack.enter_context(
            started(directory, r"at (spark://127\.0\.0\.1:\d+)", *of("master.Master"), "--port", "0")
        )
        for _ in range(2):
            share = ("--cores", "1", "--memory", "1g", "--work-dir", str(directory / "work"))
            stack.enter_context(
                started(directory, r"registered with master (\S+)", *of("worker.Worker"), *share, address)
            )
        yield address, directory


def of(name: str) -> tuple[str, ...]:
    """The command of a part of the cluster."""
    return "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0"


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory) -> Iterator[Server]:
    """A server with TLS, whose authority only a file knows."""
    with running(tmp_path_factory.mktemp("tls") / "forq.db", tls=True) as server:
        yield server


def submitted(address: str, folder: Path, *arguments: str, **told: str) -> str:
    """What Spark and the program said. told: of the environment of the driver."""
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "true",  # the program asks it what it shows
    }
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [BIN / "spark-submit", "--master", address, *confs, *arguments, folder],
        cwd=folder,
        env=environment() | told,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("way", ["environment", "file", "sent file", "setting"])
def test_two_workers_drain_a_queue_and_fill_another(master, encrypted, tmp_path, way) -> None:
    """The driver alone has the secret and the authority, and nothing that Spark leaves or shows has the secret."""
    address, workers = master
    contents = [f"größe {number}" for number in range(MESSAGES)]
    source, target = f"source {way}".replace(" ", "-"), f"target {way}".replace(" ", "-")
    encrypted.send(source, contents)
    (tmp_path / "own").mkdir()
    secret = tmp_path / "own" / "secret.txt"
    secret.write_text(SECRET, encoding="utf-8")
    settings, told = {
        "environment": ([], {"FORQ_AUTH_SECRET": SECRET}),
        "file": (["--conf", f"spark.forq.tokenFile={secret}"], {}),
        "sent file": (["--files", secret, "--conf", "spark.forq.tokenFile=secret.txt"], {}),
        "setting": (["--conf", f"spark.forq.token={SECRET}"], {}),
    }[way]
    settings += ["--conf", f"spark.forq.caFile={encrypted.ca}"]
    job = Path(__file__).with_name("cluster_job.py")
    before = set(workers.rglob("*"))
    said = submitted(address, tmp_path, *settings, job, encrypted.url, source, target, **told)
    assert sorted(encrypted.contents(target)) == sorted(contents)
    assert encrypted.contents(source) == []
    left = {path for place in (tmp_path, workers) for path in place.rglob("*") if path not in before}
    assert len([path for path in left if path.parent.name.startswith("app-")]) == 2
    secret.unlink()
    assert "RelationV2" in said
    assert "spark.eventLog.enabled" in (tmp_path / "ui").read_text(encoding="utf-8")
    assert any(path.name.startswith("events_") for path in left)
    assert SECRET not in said
    sent = {"secret.txt"} if way == "sent file" else set()  # of executors
    assert {path.name for path in left if path.is_file() and SECRET.encode() in path.read_bytes()} == sent
