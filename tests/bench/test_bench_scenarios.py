"""Every scenario once, tiny, against real server processes, so that none of them can rot."""

import json
import socket

import pytest
from bench.__main__ import main
from bench.context import Context
from bench.scenarios import SCENARIOS
from bench.servers import KEY, ServerError, forq_server, running_server
from bench.settings import TINY
from click.testing import CliRunner

pytestmark = pytest.mark.process

ROWS = {
    "ceiling": 2,
    "produce": 1,
    "cycle": 4,
    "ratio": 1,
    "paced": 1,
    "1c1p": 1,
    "10c10p": 2,
    "40c20p": 2,
    "batch": 2,
    "idle": 1,
    "backlog": 6,
    "embedded": 4,
    "peers": None,
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_measures_something_and_meets_no_errors(name, tmp_path):
    said = []
    rows = SCENARIOS[name].run(Context(TINY, tmp_path, say=said.append))
    assert ROWS[name] in (None, len(rows))
    for row in rows:
        assert not row.get("errors")
        rates = [value for key, value in row.items() if key.endswith("per_second")]
        latencies = [value for key, value in row.items() if key.endswith("p50_ms")]
        assert rates or latencies
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


def test_a_wrong_key_is_said_and_not_measured(tmp_path):
    with forq_server(tmp_path, "full") as server:
        remote = running_server(server.api.url, "wrong" * 10, None, None)
        with pytest.raises(ServerError, match="refuses a message: 401"):
            SCENARIOS["produce"].run(Context(TINY, tmp_path, remote=remote))


def test_a_server_that_is_not_there_is_said():
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(ServerError, match="does not answer"):
            running_server(f"http://127.0.0.1:{deaf.getsockname()[1]}", KEY, None, None)
