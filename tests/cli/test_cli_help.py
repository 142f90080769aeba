"""The help has what somebody needs who sees it for the first time, at 80 columns."""

import re
import shlex
from collections.abc import Callable

import pytest

from forq_trio.cli import commands
from forq_trio.client.address import DEFAULT_URL
from forq_trio.config.settings import SETTINGS
from forq_trio.model.limits import AUTH_SECRET_LENGTH_MIN

from .conftest import Forq
from .test_cli_docs import COMMANDS

Help = Callable[..., str]
HEADING = re.compile(r"^(\S.*):$", re.MULTILINE)


@pytest.fixture
def shown(connected: Forq, monkeypatch: pytest.MonkeyPatch) -> Help:
    """The help at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def shown(*arguments: str) -> str:
        done = connected(*arguments)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
        return done.out

    return shown


def section(text: str, heading: str) -> str:
    """The lines below a heading."""
    found = re.search(rf"^{re.escape(heading)}:\n((?: .*\n)+)", text, re.MULTILINE)
    assert found is not None, heading
    return found[1]


def in_one_piece(text: str) -> str:
    """Without blanks: the help breaks lines at them, and at hyphens."""
    return "".join(text.split())


def test_every_command_is_in_one_group_and_those_to_begin_with_are_first(shown: Help):
    text = shown("--help")
    groups = HEADING.findall(text)[1:-2]
    assert groups[0] == "Run"
    assert len(groups) >= 6
    listed = [re.findall(r"^  (\w+)  +\S", section(text, group), re.MULTILINE) for group in groups]
    assert [name for group in listed for name in group] == list(commands._COMMANDS)
    assert listed[0][:3] == ["demo", "init", "serve"]
    places = {
        len(line) - len(line[2:].split(maxsplit=1)[1])
        for group in groups
        for line in section(text, group).splitlines()
    }
    assert len(places) == 1


def test_the_variables_are_named_and_the_example_works(shown: Help, connected: Forq):
    text = shown("--help")
    variables, example = HEADING.findall(text)[-2:]
    assert re.findall(r"^  (\w+) ", section(text, variables), re.MULTILINE) == [
        "FORQ_URL",
        "FORQ_AUTH_SECRET",
    ]
    assert DEFAULT_URL in text
    assert f"at least {AUTH_SECRET_LENGTH_MIN} characters" in text
    lines = section(text, example).splitlines()
    assert [line.split()[0] for line in lines] == ["export", "forq", "forq", "forq"]
    assert lines[1] == "  forq serve &"
    for line in lines[2:]:
        done = connected(*shlex.split(line)[1:])
        assert done.code == 0, done.err
    assert done.out == "hello\n"


@pytest.mark.parametrize("command", ["serve", "config"])
def test_every_setting_shows_its_variable_and_its_default_with_its_unit(shown: Help, command: str):
    text = in_one_piece(shown(command, "--help") + shown(command, "--help-sasquatch"))
    for setting in SETTINGS.values():
        default = "required" if setting.field.is_required() else f"default: {setting.default_words}"
        if setting.option is None:
            row = (
                f"{setting.variable} {setting.form.metavar} {setting.doc} [{setting.form.allowed}; {default}]"
            )
            assert in_one_piece(row) in text
        else:
            assert in_one_piece(f"{setting.doc} [{setting.variable}; {default}]") in text
        unit = re.match(r"(Hours|Seconds|MiB) ", setting.doc)
        assert unit is None or setting.default_words.lower().endswith(unit[1].lower()), setting.name
    assert "[FORQ_QUEUE_TTL_HOURS;default:24hours]" in text
    assert "[FORQ_DISK_RESERVE_MB;default:64MiB]" in text
    assert "[FORQ_SASQUATCH_MAX_MESSAGE_SIZE_KB;default:256KiB]" in text


def test_the_help_of_serve_names_postgresql_and_begins_with_what_people_need(shown: Help):
    text = shown("serve", "--help")
    about, *_ = text.split("Options:")
    assert "PostgreSQL if FORQ_DB_URL" in " ".join(about.split())
    sections = re.findall(r"^\[(\w+)\]:$", text, re.MULTILINE)
    assert sections[:2] == ["server", "database"]
    assert "FORQ_DB_URL URL" in section(text, "[database]")
    assert re.findall(r"^  (--\w+)", section(text, "Options"), re.MULTILINE)[0] == "--config"
    assert not re.search(r"\[FORQ_API_ADDR;\n", text)  # a variable and its default are not torn apart


def test_every_help_fits_and_says_number(shown: Help):
    for name in COMMANDS:
        assert " RANGE" not in shown(*name.split(), "--help"), name
