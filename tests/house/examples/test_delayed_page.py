"""The programs of docs/delayed.md run as they stand and print what they should; its tables name every method."""

import re
from pathlib import Path

import pytest

from forq_trio.delayed import CronService, DelayedQueue
from support.programs import run_program

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "delayed.md").read_text(encoding="utf-8")
PROGRAMS = dict(
    re.findall(r"^#+ (.+)\n(?:(?!^#+ |^```python)[\s\S])*?^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
)
LINES_MAX = 12
PRINTED = {
    "Delayed messages": "tea The tea is ready\n",
    "Index a document when its edits pause": "index document/7 best\n",
    "A daily report": "2 are waiting\n",
    "One job per customer": "created\nignored\nignored\ncreated\n",
}
NOT_IN_THE_TABLE = {"create", "set_up", "pending", "cancel"}


def test_every_program_is_run() -> None:
    assert PROGRAMS.keys() == PRINTED.keys()
    assert len(PROGRAMS) == PAGE.count("```python")


def test_the_first_program_is_short() -> None:
    assert len([line for line in PROGRAMS["Delayed messages"].splitlines() if line]) <= LINES_MAX


@pytest.mark.parametrize("name", PRINTED)
def test_it_runs(name: str, tmp_path: Path) -> None:
    run = run_program(PROGRAMS[name], tmp_path)
    assert (run.stderr, run.stdout) == ("", PRINTED[name])


@pytest.mark.parametrize("kind", [DelayedQueue, CronService])
def test_the_tables_name_every_method(kind: type) -> None:
    methods = {name for name in vars(kind) if not name.startswith("_")} - NOT_IN_THE_TABLE
    assert methods <= set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))
