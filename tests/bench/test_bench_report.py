"""Results on disk, as tables and as a plot; the machine's description."""

import io
import json
import os
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bench.report import machine, results, table

LATENCY = {"p50_ms": 1.0, "p90_ms": 1.5, "p99_ms": 2.0, "p99_9_ms": 12.5, "max_ms": 20.0, "mean_ms": 1.1}
RATES = {f"{name}_per_second": 4_000.0 for name in ("bare", "noop", "send", "cycle")}
HANDOFF = {"consumers": 40, "producers": 20, "load": "2000/s", "received_per_second": 1_999.5, **LATENCY}
SCENARIO_ROWS = {
    "ratio": [
        {"connections": 1, **RATES, "send_ratio": 0.5},
        {"connections": 32, **RATES, "send_ratio": 0.4},
    ],
    "produce": [{"connections": 1, "per_second": 4_321.0, **LATENCY, "errors": {"503": 7}}],
    "1c1p": [HANDOFF],
    "40c20p": [HANDOFF, {**HANDOFF, "load": "flat out"}],
    "batch": [{"connections": 8, "step": "send", "messages_per_second": 70_000.0, **LATENCY}],
    "embedded": [{"work": "send", "tasks": 256, "messages_per_second": 41_000.0, **LATENCY}],
    "backlog": [
        {"step": "claim", "empty_p50_ms": 0.4, "loaded_p50_ms": 0.5, "loaded_to_empty": 1.25},
        {"step": "GET /metrics", "empty_p50_ms": None, "loaded_p50_ms": None},
    ],
    "peers": [
        {
            "queue": "other",
            "callers": "1 thread",
            "put_get_ack_per_second": 900.0,
            "journal": "wal",
            "synchronous": "NORMAL",
            "fsync_before_answer": False,
        }
    ],
}


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    return machine.describe(tmp_path_factory.mktemp("data"), fsync_probes=3)


@pytest.fixture
def measured(described):
    about = {
        **described,
        "server": "forq-trio",
        "durability": "fsync=full",
        "settings": "tiny",
        "body_bytes": 200,
    }
    scenarios = {
        name: {"about": f"About {name}.", "durability": "fsync=full", "rows": rows}
        for name, rows in SCENARIO_ROWS.items()
    }
    return {"about": about, "scenarios": scenarios}


def test_the_machine_is_described_wholly(measured):
    about = measured["about"]
    assert about["machine"]["cores"] == len(os.sched_getaffinity(0))
    assert about["machine"]["cpu"]
    assert about["storage"]["filesystem"] != "unknown"
    assert about["storage"]["fdatasync_p50_ms"] <= about["storage"]["fdatasync_p99_ms"]
    assert {"python", "sqlite (apsw)", "trio", "apsw"} <= about["versions"].keys()


def test_memory_filesystems_are_recognised(tmp_path):
    with open("/proc/self/mountinfo") as mounts:
        proc = any(line.split()[4] == "/proc" for line in mounts)
    if not proc:
        pytest.skip("/proc is not a mount of its own here")
    assert machine.filesystem(tmp_path) != "proc"
    assert machine.filesystem(type(tmp_path)("/proc/self")) == "proc"


def test_results_survive_a_round_trip(measured, tmp_path):
    path = tmp_path / "new" / results.file_name(measured)
    results.save(measured, path)
    assert results.load(path) == measured
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_other_json_is_not_taken_for_results(tmp_path):
    path = tmp_path / "other.json"
    path.write_text(json.dumps([1]))
    with pytest.raises(ValueError, match="not a file of benchmark results"):
        results.load(path)


def test_tables_state_machine_and_durability_and_show_errors(measured):
    console = Console(width=250, record=True, file=io.StringIO())
    table.show(measured, console)
    text = console.export_text()
    for part in ("fsync=full", measured["about"]["machine"]["kernel"], "4,321", "503: 7", "p99.9 ms", "NO"):
        assert part in text


def test_on_a_narrow_terminal_no_figure_is_lost(measured):
    """Tables that are too wide are turned: a line for each column."""
    rows = [{f"figure_{n}": 1_234_567 + n + 100 * row for n in range(17)} for row in range(3)]
    wide = {"wide": {"about": "a wide table", "durability": "fsync=full", "rows": rows}}
    output = io.StringIO()
    table.show({**measured, "scenarios": wide}, Console(file=output, width=80))
    assert all(f"{value:,}" in output.getvalue() for row in rows for value in row.values())
    assert max(map(len, output.getvalue().splitlines())) <= 80


def test_markdown_has_a_table_for_each_scenario(measured):
    text = table.markdown(measured)
    assert text.count("### ") == len(SCENARIO_ROWS)
    assert "| connections | per second | p50 ms |" in text
    for block in text.split("### ")[1:]:
        widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(widths) == 1


@pytest.mark.tier2
def test_the_plot_has_a_panel_for_each_question_and_is_the_same_each_time(measured, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra bench is not installed: no plot drawn")
    from bench.report.plot import PANELS, draw

    drawn = {name for names in PANELS for name in names}
    assert drawn - {"10c10p"} == SCENARIO_ROWS.keys()
    draw(measured, tmp_path / "one.svg")
    draw(measured, tmp_path / "two.svg")
    drawing = (tmp_path / "one.svg").read_text()
    assert drawing == (tmp_path / "two.svg").read_text()
    text = "".join(ElementTree.fromstring(drawing).itertext())
    for part in ("fsync=full", "Requests per second", "send, receive, ack", "no fsync before the answer"):
        assert part in text


@pytest.mark.tier2
def test_without_anything_to_plot_there_is_an_error(measured, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra bench is not installed: no plot drawn")
    from bench.report.plot import draw

    measured["scenarios"] = {"idle": {"rows": []}}
    with pytest.raises(ValueError, match="idle"):
        draw(measured, tmp_path / "none.svg")
