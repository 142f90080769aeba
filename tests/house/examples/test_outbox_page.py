"""docs/outbox.md: its program and its command run."""

import re
from pathlib import Path

import pytest

from forq_trio import ForqClient
from forq_trio.cli.commands import run
from support.in_process import in_process_server
from support.programs import run_program
from support.real_server import SECRET

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "outbox.md").read_text(encoding="utf-8")
LINES_MAX = 12


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found


def test_the_page_begins_with_a_short_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = block("python")
    assert len([line for line in program.splitlines() if line]) <= LINES_MAX
    done = run_program(program, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        monkeypatch.setenv("FORQ_URL", url)
        assert run(block("sh").partition("#")[0].split()[1:]) == 0
        assert capsys.readouterr().out == "1 message sent.\n"
        (delivery,) = client.receive("orders", wait_ms=0)
        assert (delivery.content, delivery.priority) == ("order 1", 200)
