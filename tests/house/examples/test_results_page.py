"""The program of docs/results.md runs as it stands, and the page is short."""

import re
from pathlib import Path

from support.programs import run_program

PAGE = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)


def test_it_runs(tmp_path: Path) -> None:
    run = run_program(PROGRAM, tmp_path)
    assert run.stdout == "Size(width=640, height=480)\ndead OSError: no such picture\n"
    assert "attempt 1" in run.stderr


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= 1_200
