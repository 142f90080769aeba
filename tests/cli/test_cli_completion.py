"""`forq completion`: what a shell that has read the script offers."""

import re
import subprocess
import sys

import pytest

from forq_trio.config.settings import SETTINGS
from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment

from .conftest import Forq

# What bash runs for a line that ends with Tab; it leaves the words in COMPREPLY.
TAB = """
eval "$1"
COMP_WORDS=({line}) COMP_CWORD={last}
_forq_completion forq
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(script: str, tmp_path, line: str) -> list[str]:
    forq = tmp_path / "forq"
    forq.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forq_trio.cli "$@"\n', encoding="utf-8")
    forq.chmod(0o755)
    words = line.split(" ")
    tab = TAB.format(line=line if words[-1] else f"{line}''", last=len(words) - 1)
    env = environment()
    env["PATH"] = f"{tmp_path}:{env['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", tab, "bash", script],
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.process
def test_bash_offers_commands_options_and_choices(forq: Forq, tmp_path):
    script = forq("completion", "bash").out
    assert offered(script, tmp_path, "forq re") == ["receive", "release", "relay", "restore"]
    assert offered(script, tmp_path, "forq queue p") == ["pause", "purge"]
    assert offered(script, tmp_path, "forq serve --sasquatch-a") == ["--sasquatch-auth"]
    assert offered(script, tmp_path, "forq pipeline archive x --table ") == ["events", "history"]


@pytest.mark.parametrize(
    ("shell", "line"), [("zsh", "#compdef forq"), ("fish", "function _forq_completion;")]
)
def test_scripts_of_other_shells(forq: Forq, shell: str, line: str):
    outcome = forq("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert line in outcome.out.splitlines()


def test_a_shell_that_is_not_known(forq: Forq):
    outcome = forq("completion", "csh")
    assert outcome.code == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in outcome.err


def test_the_help_of_serve_fits_into_80_columns_and_has_sasquatch_apart(forq: Forq, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = {}
    for option in ("--help", "--help-sasquatch"):
        done = forq("serve", option)
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
        shown[option] = re.findall(r"^(\[\w+\]|  --\S+)", done.out, re.MULTILINE)
        assert "--api-addr is FORQ_API_ADDR" in " ".join(done.out.split()) or option != "--help"
    assert shown["--help"].index("[server]") < shown["--help"].index("  --api-addr")
    assert shown["--help-sasquatch"][0] == "[sasquatch]"
    listed = {text.strip(" ,") for each in shown.values() for text in each}
    assert listed >= {setting.option for setting in SETTINGS.values() if setting.option}
    assert not any(text.startswith("  --sasquatch") for text in shown["--help"])
