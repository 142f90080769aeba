"""docs/coming-from.md: its program runs with a server and with a file, and what its tables name is there."""

import re
from pathlib import Path

import pytest

import forq_trio.worker
from forq_trio.model import limits
from support.in_process import in_process_server
from support.programs import run_program

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
(SENDING,) = re.findall(r"^It is sent by `(await send_email.*?)`", PAGE, re.MULTILINE)
USED = f"""
async def first() -> None:
    to, text = "anna", "hello"
    {SENDING}
    await send_email.later(Mail(to, text))

app.run(first=first, stop_when_empty=True)
print(app.stats["emails"].handled)
"""


@pytest.mark.parametrize("source", ["server", "file"])
def test_the_program_runs(source: str, tmp_path: Path) -> None:
    with in_process_server() as url:
        program = PROGRAM.replace("http://localhost:8080", url if source == "server" else "sqlite:///mail.db")
        done = run_program(program + USED, tmp_path)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_every_queue_of_the_first_table_has_a_part() -> None:
    (table,) = re.findall(r"^\|---.*\n((?:\|.*\n)+)\nA handler with", PAGE, re.MULTILINE)
    names = [row.split("|")[1].strip() for row in table.splitlines()]
    assert ["here", *re.findall(r"^## (.*)", PAGE, re.MULTILINE)] == names


def test_outcomes_and_bounds_that_it_names_are_ours() -> None:
    outcomes = set(re.findall(r"`(?:raise )?([A-Z]\w+)\((?:delay|reason|5)\)`", PAGE))
    assert outcomes == {"Retry", "DeadLetter", "Discard"}
    assert all(hasattr(forq_trio.worker, each) for each in outcomes)
    assert f"`delay` up to {limits.DELAY_MS_MAX // limits.DAY_MS} days" in PAGE
