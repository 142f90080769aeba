"""`forq completion`: what a shell that has read the script offers."""

import re
import socket
import subprocess
import sys
from contextlib import nullcontext

import click
import pytest
from click.shell_completion import ShellComplete, get_completion_class

from forq_trio import ForqClient, NewMessage, Scope
from forq_trio.cli import COMPLETION_VARIABLE, commands, connection, names
from forq_trio.cli.names import ANSWER_SECONDS_MAX
from forq_trio.config.settings import SETTINGS
from forq_trio.model.publishing.types import Stage
from forq_trio.model.schedules.types import NewSchedule
from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment

from .conftest import NOWHERE, Forq

# What bash runs for a line that ends with Tab; it leaves the words in COMPREPLY.
TAB = """
eval "$1"
COMP_WORDS=({line}) COMP_CWORD={last}
_forq_completion forq
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(script: str, tmp_path, line: str, **variables: str) -> list[str]:
    forq = tmp_path / "forq"
    forq.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forq_trio.cli "$@"\n', encoding="utf-8")
    forq.chmod(0o755)
    words = line.split(" ")
    tab = TAB.format(line=line if words[-1] else f"{line}''", last=len(words) - 1)
    env = environment(**variables)
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
    assert offered(script, tmp_path, "forq re") == ["receive", "release", "result", "restore", "relay"]
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


@pytest.mark.process
def test_bash_offers_queues_of_the_server_and_says_nothing_without_one(
    forq: Forq, tmp_path, client: ForqClient, url: str, queue: str
):
    script = forq("completion", "bash").out
    client.produce(queue, "x")
    line = f"forq receive {queue[:20]}"
    # Where the machine is busy the server may be too slow, as for somebody who then presses Tab again.
    tries = (offered(script, tmp_path, line, FORQ_URL=url) for _ in range(10))
    assert next(filter(None, tries), None) == [queue]
    assert offered(script, tmp_path, "forq receive ", FORQ_URL=NOWHERE) == []
    assert offered(script, tmp_path, "forq receive ", FORQ_URL=url, FORQ_AUTH_SECRET="") == []


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may be slow."""
    monkeypatch.setattr(names, "ANSWER_SECONDS_MAX", WAIT_SECONDS_MAX)


def completions(*line: str) -> list[str]:
    *arguments, incomplete = line
    complete = ShellComplete(commands.forq, {}, "forq", COMPLETION_VARIABLE)
    return [item.value for item in complete.get_completions(arguments, incomplete)]


@pytest.mark.parametrize(
    "line",
    [
        *("send", "receive", "peek", "ack", "cancel", "export", "work", "workers", "queue show", "queue set"),
        *("dead list", "dead redrive", "history list", "key list", "consumers list", "schedule add s"),
        *("events --queue", "dead redrive q --target", "queue set q --dead-letter-queue", "pipeline replay"),
    ],
)
def test_an_argument_that_is_a_queue_is_completed(connected: Forq, client: ForqClient, queue: str, line: str):
    client.produce(queue, "x")
    assert completions(*line.split(), queue[:20]) == [queue]
    assert queue in completions(*line.split(), "")
    assert completions(*line.split(), f"{queue}-") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_them(
    connected: Forq, client: ForqClient, queue: str, shell: str, monkeypatch: pytest.MonkeyPatch
):
    client.produce(queue, "x")
    kind = get_completion_class(shell)
    assert kind is not None
    monkeypatch.setenv("COMP_WORDS", f"forq receive {queue[:20]}")
    monkeypatch.setenv("COMP_CWORD", "2" if shell != "fish" else queue[:20])
    assert queue in kind(commands.forq, {}, "forq", COMPLETION_VARIABLE).complete()


def test_names_of_other_things_are_completed(connected: Forq, client: ForqClient, queue: str):
    name = f"n{queue}"
    client.save_schedule(name, NewSchedule(queue=queue, content="m", every="1h"))
    client.create_token(name, [Scope.BROWSE])
    client.produce(queue, "x")
    client.open_consumer(queue, name)
    client.stage(queue, "s", 0, [NewMessage("x")])
    client.publish(name, 1, [Stage(queue, "s", 1)])
    for line in ("schedule show", "schedule pause", f"schedule remove {name}", "token revoke", "apps delete"):
        assert completions(*line.split(), name[:20]) == [name], line
    assert completions("consumers", "show", queue, "") == [name]
    client.delete_schedule(name)


def test_the_url_on_the_line_is_asked(forq: Forq, url: str, client: ForqClient, queue: str):
    client.produce(queue, "x")
    assert completions("peek", "--url", url, queue[:20]) == [queue]


def test_a_server_that_says_nothing_keeps_nobody_waiting(
    forq: Forq, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    assert ANSWER_SECONDS_MAX <= 1
    monkeypatch.setattr(names, "ANSWER_SECONDS_MAX", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("FORQ_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert completions("receive", "") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "variables", [{"FORQ_URL": NOWHERE}, {"FORQ_URL": "nonsense"}, {"FORQ_AUTH_SECRET": ""}]
)
def test_nothing_is_offered_or_said_where_the_server_cannot_be_asked(
    connected: Forq,
    variables: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert completions("receive", "") == []
    assert capfd.readouterr() == ("", "")


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


def test_a_name_that_a_shell_would_expand_is_not_offered(monkeypatch: pytest.MonkeyPatch):
    """click's script lets bash expand what is offered, and whatever says that it is a server may have named it."""
    monkeypatch.setattr(connection, "connect", lambda *_, **__: nullcontext())
    hostile = ["$(touch${IFS}ran)", "/*/*/*/*", "a\nplain,b", "a\x1b[2J", "-n", "a;b", "a b", ""]
    context = click.Context(click.Command("send"))
    context.params["url"] = ""
    name = names.ServerName(lambda *_: [*hostile, "fine.queue_1-a"])
    found = name.shell_complete(context, click.Argument(["queue"]), "")
    assert [each.value for each in found] == ["fine.queue_1-a"]
