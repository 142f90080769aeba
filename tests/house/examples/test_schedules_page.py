"""docs/schedules.md: its program and commands run, its file can be applied, and it has every member and option."""

import re
import shlex
from pathlib import Path

import pytest

from forq_trio import NewSchedule
from forq_trio.cli.commands import run
from forq_trio.cli.schedule_file import read_schedules
from support.in_process import in_process_server
from support.programs import run_program
from support.real_server import SECRET

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
LINES_MAX = 12


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def url():
    with in_process_server() as url:
        yield url


def test_the_page_begins_with_a_short_program_that_runs(url: str, tmp_path: Path) -> None:
    (program,) = blocks("python")
    assert len([line for line in program.splitlines() if line]) <= LINES_MAX
    done = run_program(program, tmp_path, FORQ_URL=url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "daily\n", "")


def test_every_command_does_what_it_says(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORQ_URL", url)
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    commands = [
        shlex.split(line)
        for block in blocks("sh")
        for line in block.replace("\\\n", " ").splitlines()
        if line.strip().startswith("forq ")
    ]
    assert len(commands) >= 8
    for command in commands:
        given = [each.replace("$customer", "7") for each in command[1:]]
        taken = given[:2] == ["schedule", "add"] and given[2] == "daily-report"
        code = run([*given, "--replace"] if taken else given)
        assert (code, capsys.readouterr().err) == (0, ""), command


def test_what_apply_is_shown_to_print_is_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,), (shown,) = blocks("toml"), blocks("console")
    path = tmp_path / "schedules.toml"
    path.write_text(text, encoding="utf-8")
    wanted = read_schedules(path)
    with in_process_server() as url:
        monkeypatch.setenv("FORQ_URL", url)
        monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
        assert run(["schedule", "add", "poll-feeds", "feeds", "poll", "--every", "60s", "--jitter", "10s",
                    "--missed", "skip", "--while-pending", "skip"]) == 0  # fmt: skip
        capsys.readouterr()
        assert run(["schedule", "apply", str(path)]) == 0
    printed = capsys.readouterr()
    assert shown == f"$ forq schedule apply schedules.toml\n{printed.out}{printed.err}"
    assert list(wanted) == ["daily-report", "poll-feeds"]


def test_the_table_has_every_member_and_its_option() -> None:
    from forq_trio.cli.schedule import add

    page = (ROOT / "docs" / "reference" / "queues.md").read_text(encoding="utf-8")
    table = page.partition("## Members of a schedule\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (?:`(--[\w-]+)`)? ?\|", table, re.MULTILINE)
    members = set(NewSchedule.__struct_encode_fields__)
    assert {member for member, _ in rows} == members
    options = {each for option in add.params for each in option.opts if each.startswith("--")}
    assert {option for _, option in rows if option} == options - {"--replace", "--json", "--url"}
