"""Where the time of a run goes: what is noted of each test, its tables, and the one in docs/testing.md."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.durations import Clock, Part, by, by_fixture, folder_of, read, table

TESTS = """
import subprocess
import sys
import pytest

BUSY = "import time\\nwhile time.process_time() < 0.3: pass"

@pytest.fixture
def busy():
    subprocess.run([sys.executable, "-c", BUSY], check=True)

@pytest.fixture
def running(busy):
    process = subprocess.Popen([sys.executable, "-c", BUSY + "\\nprint(1, flush=True)\\ninput()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.read(1)
    yield
    process.communicate(b"\\n")

def test_with_processes(running): pass

def test_without(): pass
"""
PARTS = [
    Part(
        "tests/a/test_x.py::test_1[1]",
        "setup",
        "passed",
        2.0,
        1.0,
        [["server", 1.5, 0.5], ["queue", 0.25, 0.25]],
    ),
    Part("tests/a/test_x.py::test_1[1]", "call", "passed", 1.0, 0.5, []),
    Part("tests/a/test_x.py::test_1[1]", "teardown", "passed", 0.5, 0.25, []),
    Part("tests/b/c/test_y.py::test_2", "setup", "passed", 0.25, 0.0, [["queue", 0.25, 0.25]]),
    Part("tests/b/c/test_y.py::test_2", "call", "passed", 0.25, 0.0, []),
]


@pytest.mark.parametrize(
    "workers",
    [pytest.param((), marks=pytest.mark.tier2), ("-p", "xdist", "-n", "1")],
    ids=["alone", "in a worker"],
)
def test_each_part_is_noted_with_its_fixtures_and_their_processes(tmp_path, workers) -> None:
    (tmp_path / "test_made_up.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    timeout\n    tier2\n    soak\n")
    path = tmp_path / "durations"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.durations", *workers],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
        | {
            "FORQ_TEST_DURATIONS": str(path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    parts = read(path)
    assert [part.when for part in parts] == 2 * ["setup", "call", "teardown"]
    fixtures = {name: processor for name, _, processor in parts[0].fixtures}
    assert fixtures.keys() == {"busy", "running"}
    assert fixtures["busy"] >= 0.3
    if sys.platform == "linux":
        assert fixtures["running"] >= 0.25
    assert parts[0].processor >= sum(fixtures.values()) - 1e-6  # as floats are added
    assert all(part.fixtures == [] for part in parts[1:])


def test_tables_have_the_longest_first() -> None:
    assert by(PARTS, folder_of) == [("tests/a", 1, 3.5, 2.5, 1.75), ("tests/b", 1, 0.5, 0.25, 0.0)]
    assert by_fixture(PARTS) == [("server", 1, 1.5, 0.5), ("queue", 2, 0.5, 0.5)]
    assert table(["what", "seconds"], [("a", 1.25)]) == "| what | seconds |\n| --- | --- |\n| a | 1.2 |"


def test_every_folder_of_tests_has_its_row(root) -> None:
    page = (root / "docs" / "testing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (tests/\w+) \| [\d,]+ \|", page, re.MULTILINE)
    assert set(rows) == {
        folder_of(str(path.relative_to(root))) for path in (root / "tests").glob("*/**/test_*.py")
    }


STARTS_ANOTHER = """
import subprocess, sys
at_work = "import time\\nwhile time.process_time() < 0.3: pass\\nprint(1, flush=True)\\ninput()"
subprocess.run([sys.executable, "-c", at_work])
"""


def test_time_of_processes_that_nobody_waits_for_stays_counted() -> None:
    command = [sys.executable, "-c", STARTS_ANOTHER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.read(1)
        clock = Clock()
        before = clock.seconds()
        process.kill()
        process.wait()
        clock._read_at = float("-inf")
        assert clock.seconds() >= before
