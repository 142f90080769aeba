"""The scripts that set up and start a server: what they print can be pasted, and a stopped run hinders no other."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SECRET = "a-secret-that-is-long-enough-for-it"


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
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    marker = run(folder, "bash", "-c", "cksum < pyproject.toml | tr ' ' -").stdout.strip()
    (folder / ".venv/installed").write_text(f"{marker} \n", encoding="utf-8")
    return folder


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody has: a server that is told to use it says so and ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def run(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder` as somebody who is offline and has set nothing but `environment`."""
    offline = {"PATH": os.environ["PATH"], "PYTHON": sys.executable, "PIP_NO_INDEX": "1", "HOME": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=offline | environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.tier2
def test_an_environment_without_pip_is_made_again(folder) -> None:
    run(folder, sys.executable, "-m", "venv", "--without-pip", ".venv").check_returncode()
    run(folder, "bash", "-c", ". script/environment; use_environment")
    pip = run(folder, ".venv/bin/python", "-m", "pip", "--version")
    assert pip.stdout.startswith("pip "), pip.stderr


def test_server_prints_commands_for_its_secret_and_address(installed, taken_port) -> None:
    outcome = run(installed, "script/server", "--api-addr", f"127.0.0.1:{taken_port}")
    assert f"127.0.0.1:{taken_port}: Address already in use" in outcome.stderr
    assert "from another terminal in this directory:" in outcome.stderr
    url = f"http://127.0.0.1:{taken_port}/api/v1/queues/emails/messages"
    assert outcome.stderr.count(f'curl -H "X-API-Key: $(cat data/secret)" {url}') == 2
    assert len((installed / "data/secret").read_text(encoding="utf-8").strip()) >= 32


def test_server_tells_that_a_secret_of_ones_own_has_to_be_set(installed, taken_port) -> None:
    outcome = run(
        installed, "script/server", "--api-addr", f"127.0.0.1:{taken_port}", FORQ_AUTH_SECRET=SECRET
    )
    assert "from another terminal where FORQ_AUTH_SECRET is the server's secret:" in outcome.stderr
    assert 'curl -H "X-API-Key: $FORQ_AUTH_SECRET" ' in outcome.stderr
    assert SECRET not in outcome.stderr
    assert not (installed / "data/secret").exists()


def test_server_leaves_secret_and_database_to_a_configuration_file(installed) -> None:
    text = f'[server]\nauth_secret = "{SECRET}"\n[database]\ndb_path = "."\n'
    (installed / "forq.toml").write_text(text, encoding="utf-8")
    outcome = run(installed, "script/server", "--config", "forq.toml")
    assert "forq.toml [database] db_path: '.' is a directory" in outcome.stderr
    assert not (installed / "data/secret").exists()


def test_server_help_is_that_of_forq_serve(installed) -> None:
    outcome = run(installed, "script/server", "--help")
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("Usage: forq serve ")
