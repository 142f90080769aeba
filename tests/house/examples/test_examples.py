"""The examples run, as a reader would run them, and do what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> str:
    """What the program wrote; its errors are ours."""
    finished = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_the_embedded_queue(tmp_path) -> None:
    """Run again on the same file within the deduplication window, nothing is done twice."""
    path = str(tmp_path / "queue.db")
    lines = run("examples/embedded.py", path).splitlines()
    done = {line.partition(": ")[2] for line in lines if "?" not in line and not line.startswith("failed")}
    assert done == {"3 apples", "1 pear", "2 figs"}
    assert {line for line in lines if line.startswith("failed")} == {
        "failed: many plums ('many' is not a number)",
        "failed: some quinces ('some' is not a number)",
    }
    assert sum("attempt 5 of 5" in line for line in lines) == 2
    assert run("examples/embedded.py", path) == ""


@pytest.mark.tier2
def test_the_embedded_queue_without_a_file_of_its_own() -> None:
    assert "failed: many plums" in run("examples/embedded.py")
