"""Every scenario once, tiny, against real server processes, so that none of them can rot."""

import json
import os
import select
import signal
import socket
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.scenarios.context import Context
from bench.scenarios.registry import SCENARIOS
from bench.scenarios.settings import TINY
from bench.targets.servers import KEY, ROOT, ServerError, forq_server, running_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

ROWS = {
    "ceiling": 2,
    "produce": 1,
    "cycle": 4,
    "ratio": 1,
    "checkouts": 2,
    "tail": 2,
    "paced": 1,
    "1c1p": 1,
    "10c10p": 2,
    "40c20p": 2,
    "protocols": 3,
    "batch": 2,
    "client": 8,
    "idle": 1,
    "dashboards": 6,
    "backlog": 6,
    "restart": 1,
    "embedded": 4,
    "features": 14,
    "features-stored": 4,
    "keys": 5,
    "keys-stored": 3,
    "neighbours": 11,
    "schedules": 3,
    "workers": None,
    "writes": 36,
    "pipelines": 6,
    "spark": 2,
    "events": None,
    "postgres": 6,
    "postgres-peers": None,
    "postgres-servers": 2,
    "postgres-ratio": 2,
    "postgres-wake-up": 2,
    "postgres-backlog": 1,
    "postgres-held-snapshot": 10,
    "servers": None,
    "sqs": None,
    "peers": None,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_measures_something_and_meets_no_errors(name, tmp_path, request, monkeypatch):
    if name.startswith("postgres"):
        monkeypatch.setenv("FORQ_BENCH_DB_URL", request.getfixturevalue("empty_tables"))
    if name == "checkouts":
        monkeypatch.setenv("FORQ_BENCH_CHECKOUT", str(ROOT))
    if name == "spark":
        monkeypatch.setenv("SPARK_CONF_DIR", str(ROOT / "tests" / "spark" / "conf"))
    said = []
    rows = SCENARIOS[name].run(Context(TINY, tmp_path, say=said.append))
    assert ROWS[name] in (None, len(rows))
    for row in rows:
        assert not row.get("errors")
        rates = [value for key, value in row.items() if key.endswith("per_second")]
        latencies = [value for key, value in row.items() if key.endswith("p50_ms")]
        assert rates or latencies or row.get("pages", 0) > 0 or row.get("median", 0) > 0
        assert all(value > 0 for value in rates + latencies), row
        assert row.get("woke_exactly_one", True) is True


def test_the_command_measures_a_running_server_and_reports(tmp_path):
    output = tmp_path / "results.json"
    run = [
        "run",
        "produce",
        "cycle",
        "embedded",
        "--set",
        "tiny",
        "--data-dir",
        str(tmp_path),
        "--output",
        str(output),
    ]
    with forq_server(tmp_path, "normal") as server:
        done = CliRunner().invoke(main, [*run, "--url", server.api.url, "--key", KEY], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    measured = json.loads(output.read_text())
    assert measured["about"]["durability"] == "fsync=normal"
    assert measured["about"]["server"] == server.api.url
    assert list(measured["scenarios"]) == ["produce", "cycle"]
    assert "SKIPPED embedded" in done.output
    shown = CliRunner().invoke(main, ["table", str(output), "--markdown"], catch_exceptions=False)
    assert shown.output.count("### ") == 2


def test_a_scenario_that_fails_is_said_and_kept_and_the_rest_runs(tmp_path):
    """A wrong key: nothing is measured, least of all how fast 401 is answered."""
    output = tmp_path / "results.json"
    run = ["run", "produce", "cycle", "--set", "tiny", "--data-dir", str(tmp_path), "--output", str(output)]
    with forq_server(tmp_path, "full") as server:
        done = CliRunner().invoke(main, [*run, "--url", server.api.url, "--key", "wrong" * 10])
    assert done.exit_code == 1
    scenarios = json.loads(output.read_text())["scenarios"]
    assert list(scenarios) == ["produce", "cycle"]
    assert all("refuses a message: 401" in scenario["failed"] for scenario in scenarios.values())
    assert done.stdout.count("FAILED: ") == 2


def kill(pid):
    """End a process at once; returns when it has ended."""
    process = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([process], [], [], 30)[0]
    os.close(process)


def test_a_server_that_dies_under_load_is_not_taken_for_measured(tmp_path):
    with ExitStack() as stack:
        server = stack.enter_context(forq_server(tmp_path, "full"))
        kill(server.pid)
        with pytest.raises(ServerError, match=r"ended during the measurement with code -9"):
            stack.close()


def test_a_server_that_is_not_there_is_said():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(ServerError, match="does not answer"):
            running_server(f"http://127.0.0.1:{deaf.getsockname()[1]}", KEY, None, None)
