"""docs/reliability.md says what there is: its paths, its commands and what they come to, the soak's rules."""

import re
import shlex
from pathlib import Path

from bench.__main__ import main
from bench.soak.verdict import GROWTH_MAX, LOG_MIB_MAX, RULES
from support import effort

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
PYTEST = [".venv/bin/python", "-m", "pytest"]


def commands() -> list[str]:
    """Every command of the page, from its blocks and its tables, with the comment behind it."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return lines + re.findall(r"^\|[^|]*\| `([^`|]+)` \|[^|]*\|$", PAGE, re.MULTILINE)


def split_variables(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The variables in front of a command, and the command."""
    variables = {}
    while "=" in words[0]:
        name, value = words[0].split("=", 1)
        variables[name] = value
        words = words[1:]
    return variables, words


def sources(place: Path) -> str:
    """The text of all tests below a folder, or of the one file."""
    files = [place] if place.is_file() else place.rglob("*.py")
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def counts_of(place: Path) -> set[str]:
    """The names of what these tests count by effort."""
    return effort.COUNTS.keys() & set(re.findall(r"\bcount\(\"(\w+)\"\)", sources(place)))


def test_the_page_has_commands_of_each_kind():
    starts = {split_variables(shlex.split(line, comments=True))[1][0] for line in commands()}
    assert starts == {".venv/bin/python", "script/bench", "script/soak"}


def test_every_command_can_be_run():
    for line in commands():
        check_command(line)


def check_command(line: str) -> None:
    """What it starts is there, whoever it starts reads its variables, and it comes to as much as is said."""
    variables, words = split_variables(shlex.split(line, comments=True))
    if words[: len(PYTEST)] == PYTEST:
        (named,) = words[len(PYTEST) :]
        place = ROOT / named
        assert place.exists()
        assert variables.keys() <= {"FORQ_SEED", effort.VARIABLE}
        assert "FORQ_SEED" not in variables or '"FORQ_SEED"' in sources(place)
        if effort.VARIABLE in variables:
            asked = effort.parse(variables[effort.VARIABLE])
            tried = {effort.count(name, asked) for name in counts_of(place)}
            assert tried, "nothing there depends on it"
            said = re.search(r"# ([\d,]+) ", line)
            assert said is None or int(said[1].replace(",", "")) in tried
        return
    assert (ROOT / words[0]).is_file()
    assert not variables
    if words[0] == "script/bench":
        command = main.commands[words[1]]
        arguments = [str(ROOT / "README.md") if word.endswith("FILE.json") else word for word in words[2:]]
        assert command.make_context(words[1], arguments).command is command
    else:
        assert words[1] == "--minutes"
        if "-k" in words:
            (name,) = words[words.index("-k") + 1 :]
            chosen = [
                path for path in (ROOT / "tests").rglob("test_*.py") if name in str(path.relative_to(ROOT))
            ]
            assert any("@pytest.mark.soak" in path.read_text(encoding="utf-8") for path in chosen)


def test_every_place_that_is_named_exists():
    named = set(re.findall(r"`((?:tests|bench|script|docs)/[\w./]+)`", PAGE))
    assert {"tests/reliability/simulation", "script/test"} <= named
    made_by_commands = {"docs/soak.svg"}
    assert {place for place in named if not (ROOT / place).exists()} <= made_by_commands


def test_every_rule_of_the_verdict_is_documented():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert [(series, how) for series, how, _ in rows] == [
        *((rule.series, rule.how) for rule in RULES),
        ("errors", "sum"),
    ]
    for rule, (_, _, fails) in zip(RULES, rows, strict=False):
        assert (
            f"{'falls' if rule.falls else 'grows'} by more than {GROWTH_MAX:.0%}".replace("%", " %") in fails
        )
        assert re.findall(r"slack (\d+)", fails) == ([f"{rule.slack:g}"] if rule.slack else [])
        assert ("yardstick" in fails) == (rule.beside is not None)
        assert re.findall(r"above (\d+) MiB", fails) == ([f"{LOG_MIB_MAX:g}"] if rule.bound else [])
