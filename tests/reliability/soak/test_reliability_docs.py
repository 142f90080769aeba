"""docs/reliability.md says what there is: its paths, its commands, every variable of the tests, the soak's rules."""

import re
import shlex
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.soak.verdict import GROWTH_MAX, LOG_MIB_MAX, RULES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
READ = re.compile(r"environ(?:\.get\(|\[)\s*\"(FORQ_[A-Z_]+)\"")
PYTEST = [".venv/bin/python", "-m", "pytest"]


def commands() -> list[list[str]]:
    """Every command of the page, from its blocks and its tables, as words."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    lines += re.findall(r"^\|[^|]*\| `([^`|]+)` \|[^|]*\|$", PAGE, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def split_variables(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The variables in front of a command, and the command."""
    variables = {}
    while "=" in words[0]:
        name, value = words[0].split("=", 1)
        variables[name] = value
        words = words[1:]
    return variables, words


def variables_of_tests(folder: str = ".") -> set[str]:
    """The variables that tests below a folder (or the one file) read themselves."""
    place = ROOT / "tests" / folder
    files = [place] if place.is_file() else place.rglob("*.py")
    return {name for path in files for name in READ.findall(path.read_text(encoding="utf-8"))}


COMMANDS = [split_variables(words) for words in commands()]


def test_the_page_has_commands_of_each_kind():
    starts = {words[0] for _, words in COMMANDS}
    assert starts == {".venv/bin/python", "script/bench", "script/soak"}


@pytest.mark.parametrize(("variables", "words"), COMMANDS, ids=lambda value: " ".join(value))
def test_a_command_can_be_run(variables, words):
    """What it starts is there, and whoever it starts reads its variables."""
    if words[: len(PYTEST)] == PYTEST:
        (place,) = words[len(PYTEST) :]
        assert (ROOT / place).exists()
        assert variables.keys() <= variables_of_tests(place.removeprefix("tests/"))
        return
    assert (ROOT / words[0]).is_file()
    if words[0] == "script/bench":
        command = main.commands[words[1]]
        arguments = [str(ROOT / "README.md") if word.endswith("FILE.json") else word for word in words[2:]]
        assert command.make_context(words[1], arguments).command is command
        assert not variables
    elif "-k" in words:
        (name,) = words[words.index("-k") + 1 :]
        chosen = [path for path in (ROOT / "tests").rglob("test_*.py") if name in str(path.relative_to(ROOT))]
        assert any("@pytest.mark.soak" in path.read_text(encoding="utf-8") for path in chosen)
        assert variables.keys() <= {
            name for path in chosen for name in READ.findall(path.read_text(encoding="utf-8"))
        }
    else:
        assert words[1] == "--minutes"


def test_every_place_that_is_named_exists():
    named = set(re.findall(r"`((?:tests|bench|script|docs)/[\w./]+)`", PAGE))
    assert {"tests/reliability/simulation", "script/test"} <= named
    made_by_commands = {"docs/soak.svg"}
    assert {place for place in named if not (ROOT / place).exists()} <= made_by_commands


def test_every_variable_of_the_tests_is_documented():
    steering = variables_of_tests() | {"FORQ_SOAK_MINUTES", "FORQ_TEST_SEED"}
    assert steering <= set(re.findall(r"FORQ_[A-Z_]+", PAGE))


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
