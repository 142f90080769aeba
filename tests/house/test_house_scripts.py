"""The scripts that set up and start a server: what they print can be pasted, and a stopped run hinders no other."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.processes import WAIT_SECONDS_MAX, killed_after
from support.programs import python_of
from support.running_demo import running_demo

OFFLINE = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "PIP_NO_INDEX": "1"}
SECRET = "a-secret-that-is-long-enough-for-it"

ANY_PORT = {"FORQ_API_ADDR": "localhost:0", "FORQ_UI_ADDR": "localhost:0"}


@pytest.fixture
def folder(root, tmp_path) -> Path:
    """A folder with the scripts, and without an environment."""
    (tmp_path / "script").mkdir()
    for script in ("environment", "server"):
        shutil.copy(root / "script" / script, tmp_path / "script")
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def installed(folder) -> Path:
    """The same with an environment: the one that runs this test."""
    commands = folder / ".venv/bin"
    commands.mkdir(parents=True)
    for name, module in (("python", ""), ("forq", " -m forq_trio.cli")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec "{python_of("server")}"{module} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    marker = run(folder, "bash", "-c", "cksum < pyproject.toml | tr ' ' -").stdout.strip()
    (folder / ".venv/installed").write_text(f"{marker} server,postgres\n", encoding="utf-8")
    return folder


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody has: a server that is told to use it says so and ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` as somebody who is offline and has set nothing but `environment`."""
    env = OFFLINE | {"HOME": str(folder)} | environment
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.tier2
def test_an_environment_without_pip_is_made_again(folder) -> None:
    run(folder, sys.executable, "-m", "venv", "--without-pip", ".venv").check_returncode()
    run(folder, "bash", "-c", ". script/environment; use_environment")
    pip = run(folder, ".venv/bin/python", "-m", "pip", "--version")
    assert pip.stdout.startswith("pip "), pip.stderr


@contextmanager
def started(folder: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """What script/server prints until it is known how to reach it."""
    command = ["script/server", "--api-addr", "127.0.0.1:0", "--ui-addr", "127.0.0.1:0", *arguments]
    env = OFFLINE | {"HOME": str(folder)} | environment
    with subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            printed = ""
            with killed_after(process):
                while "\nIts password is " not in printed:
                    line = process.stderr.readline()
                    assert line, f"the server did not start: {printed}"
                    printed += line
            yield printed
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS_MAX)


@pytest.mark.tier2
def test_server_tells_nothing_to_paste_before_it_listens(installed, taken_port) -> None:
    outcome = run(installed, "script/server", "--api-addr", f"127.0.0.1:{taken_port}")
    assert outcome.returncode == 1
    assert f"127.0.0.1:{taken_port}: Address already in use" in outcome.stderr
    assert "curl" not in outcome.stderr
    assert not (installed / "data/env").exists()
    assert len((installed / "data/secret").read_text(encoding="utf-8").strip()) >= 32


@pytest.mark.skipif(shutil.which("curl") is None, reason="the commands use curl")
def test_commands_can_be_pasted_whatever_the_port(installed, root) -> None:
    """Those of the README, and those that are printed."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    in_readme = re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[2:4]
    assert [block.split()[0] for block in in_readme] == [".", "forq"]
    with started(installed) as printed:
        pasted = run(installed, "bash", "-ec", "".join(in_readme))
        assert pasted.stdout.count("HTTP/1.1 200 OK") + pasted.stdout.count("HTTP/1.1 204 No Content") == 2
        assert '"content":"I am going on an adventure!"' in pasted.stdout
        assert '"results":[{"receipt":' in pasted.stdout
        assert pasted.stdout.splitlines()[-4] == '{"to": "anna"}'
        assert (pasted.returncode, (installed / "data/copy.db").exists()) == (0, True), pasted.stderr
        commands = [line for line in printed.splitlines() if line.startswith("  ")]
        told = [line for line in printed[printed.index("Listening on ") :].splitlines() if line[:1] != "{"]
        assert max(map(len, told)) <= 80
        outcome = run(installed, "bash", "-ec", "\n".join(commands))
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout.endswith("\nemails\t0\t0\t1\t0\t0\t0\tno\tHealthy\n")


@pytest.mark.tier2
@pytest.mark.parametrize("arguments", [("--url-file", "urls"), ("--url-file=urls",)])
def test_server_writes_its_urls_where_it_is_told_to(installed, arguments) -> None:
    with started(installed, *arguments) as printed:
        url, ui_url = (installed / "urls").read_text(encoding="utf-8").splitlines()
    assert f"Listening on {url}." in printed
    assert f'"{ui_url.removeprefix("http://")}"' in printed  # of the log


@pytest.mark.tier2
def test_server_tells_that_a_secret_of_ones_own_has_to_be_set(installed) -> None:
    with started(installed, FORQ_AUTH_SECRET=SECRET) as printed:
        words = "from another terminal in this directory where FORQ_AUTH_SECRET is the server's secret:"
        assert words in " ".join(printed.split())
        assert 'KEY="X-API-Key: $FORQ_AUTH_SECRET" ' in printed
        assert SECRET not in printed + (installed / "data/env").read_text(encoding="utf-8")
    assert not (installed / "data/secret").exists()


def test_server_leaves_secret_and_database_to_a_configuration_file(installed) -> None:
    text = f'[server]\nauth_secret = "{SECRET}"\n[database]\ndb_path = "."\n'
    (installed / "forq.toml").write_text(text, encoding="utf-8")
    outcome = run(installed, "script/server", "--config", "forq.toml")
    assert "forq.toml [database] db_path: '.' is a directory" in outcome.stderr
    assert not (installed / "data/secret").exists()


@pytest.mark.tier2
def test_server_has_no_file_where_a_database_is_named(installed) -> None:
    outcome = run(installed, "script/server", FORQ_DB_URL=f"postgresql:///queue?host={installed}", **ANY_PORT)
    assert outcome.returncode == 2
    assert f"{installed}/.s.PGSQL.5432" in outcome.stderr, outcome.stderr  # nobody listens on that socket


@pytest.mark.tier2
def test_server_installs_what_postgresql_needs(installed) -> None:
    marker = installed / ".venv/installed"
    marker.write_text(marker.read_text(encoding="utf-8").replace(",postgres", ""), encoding="utf-8")
    python = installed / ".venv/bin/python"
    python.write_text(
        f'#!/bin/sh\n[ "$2" != pip ] || exec echo "$@" >> installs\nexec "{sys.executable}" "$@"\n',
        encoding="utf-8",
    )
    outcome = run(installed, "script/server", FORQ_DB_URL=f"postgresql:///queue?host={installed}", **ANY_PORT)
    assert f"{installed}/.s.PGSQL.5432" in outcome.stderr, outcome.stderr
    assert (installed / "installs").read_text(encoding="utf-8").endswith(" --editable .[server,postgres]\n")


@pytest.mark.tier2
def test_server_leaves_the_secret_to_a_file_of_ones_own(installed, root) -> None:
    (installed / "mine").write_text("short", encoding="utf-8")
    variables = ANY_PORT | {"FORQ_AUTH_SECRET_FILE": "mine", "PYTHONPATH": str(root)}
    outcome = run(installed, "script/server", **variables)
    assert "FORQ_AUTH_SECRET_FILE: has only 5 characters" in outcome.stderr
    assert not (installed / "data/secret").exists()


@pytest.mark.tier2
def test_server_runs_the_demo(installed, root) -> None:
    command = (str(installed / "script/server"), "--demo")
    with running_demo("--no-browser", command=command, PYTHONPATH=str(root)) as running:
        assert running.folder.exists()
        assert running.ended(signal.SIGINT)[0] == 0
    assert not (installed / "data").exists()


def test_server_help_is_that_of_forq_serve(installed) -> None:
    outcome = run(installed, "script/server", "--help")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("Usage: forq serve ")
