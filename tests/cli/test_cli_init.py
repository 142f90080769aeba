"""`forq init`: what it writes, that it overwrites nothing, and that a server starts with it."""

import configparser
import getpass
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from forq_trio import ForqClient
from forq_trio.app import FORCED_EXIT_SECONDS
from forq_trio.config.load import load
from forq_trio.model import limits
from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment, started

from .conftest import Forq

NAMES = ("secret", "data", "forq.toml")


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Mode, time of the last change and content of all that is there."""
    return {
        path.name: (
            (found := path.stat()).st_mode,
            found.st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in folder.iterdir()
    }


@pytest.fixture
def seen_folder() -> Iterator[Path]:
    """A folder that a systemd service sees, as it does none below /tmp. Its name is no longer than that of a home."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def test_only_this_user_can_read_what_it_writes(
    forq: Forq, seen_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("FORQ_AUTH_SECRET")
    folder = seen_folder / "new" / "forq"
    outcome = forq("init", str(folder), "--systemd")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line for line in outcome.out.splitlines() if line.startswith("wrote ")] == [
        f"wrote {folder / name}" for name in (*NAMES, "forq.service")
    ]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"secret": 0o600, "data": 0o700, "forq.toml": 0o600, "forq.service": 0o644}
    secret = (folder / "secret").read_text(encoding="utf-8").strip()
    assert len(secret) >= limits.AUTH_SECRET_LENGTH_MIN
    assert secret not in outcome.out + (folder / "forq.toml").read_text(encoding="utf-8")


def test_the_settings_name_the_secret_and_the_database(forq: Forq, tmp_path: Path):
    forq("init", str(tmp_path))
    file = tmp_path / "forq.toml"
    config = load({}, {}, file).config
    assert config.auth_secret == (tmp_path / "secret").read_text(encoding="utf-8").strip()
    assert config.db_path == tmp_path / "data" / "forq.db"
    text = file.read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if line and not line.startswith(("#", "["))] == [
        f'auth_secret_file = "{tmp_path}/secret"',
        f'db_path = "{tmp_path}/data/forq.db"',
    ]
    assert "# Where the API listens.\n" in text


def test_a_second_run_says_what_is_there_and_changes_nothing(forq: Forq, tmp_path: Path):
    first = forq("init", str(tmp_path), "--json")
    assert json.loads(first.out)["wrote"] == [str(tmp_path / name) for name in NAMES]
    before = everything(tmp_path)
    second = forq("init", str(tmp_path), "--json")
    assert json.loads(second.out) == {
        "wrote": [],
        "present": [str(tmp_path / name) for name in NAMES],
        "next": [f"forq serve --config {tmp_path / 'forq.toml'}"],
    }
    words = forq("init", str(tmp_path)).out
    assert "wrote" not in words
    assert all(f"is there already: {tmp_path / name}\n" in words for name in NAMES)
    assert everything(tmp_path) == before


def test_it_writes_what_is_missing_beside_what_is_there(forq: Forq, tmp_path: Path):
    (tmp_path / "secret").write_text("x" * 32, encoding="utf-8")
    (tmp_path / "secret").chmod(0o600)
    assert json.loads(forq("init", str(tmp_path), "--json").out)["present"] == [str(tmp_path / "secret")]
    assert load({}, {}, tmp_path / "forq.toml").config.auth_secret == "x" * 32


def test_without_a_folder_it_is_the_current_one(forq: Forq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert forq("init").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


def test_what_is_in_the_way_is_named(forq: Forq, tmp_path: Path):
    (tmp_path / "data").write_text("", encoding="utf-8")
    outcome = forq("init", str(tmp_path))
    assert (outcome.code, outcome.err) == (1, f"forq: {tmp_path / 'data'} is there, and is no folder\n")
    outcome = forq("init", str(tmp_path / "data"))
    assert (outcome.code, "is a file" in outcome.err) == (2, True)


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path: Path):
    program = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))\n"
        "from forq_trio.cli import main\nmain()"
    )
    command = [sys.executable, "-c", program, "init", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX, env=environment()
    )
    assert (done.returncode, "File too large" in done.stderr) == (1, True), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "secret"]


def test_the_lines_fit_a_terminal(forq: Forq, seen_folder: Path):
    outcome = forq("init", str(seen_folder), "--systemd", terminal=True)
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.process
def test_a_server_starts_with_it(forq: Forq, tmp_path: Path):
    forq("init", str(tmp_path))
    command = [sys.executable, "-m", "forq_trio.cli", "serve", "--config", str(tmp_path / "forq.toml")]
    command += ["--api-addr", "127.0.0.1:0", "--ui-addr", "127.0.0.1:0"]
    secret = (tmp_path / "secret").read_text(encoding="utf-8").strip()
    env = environment(FORQ_AUTH_SECRET="")
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            with ForqClient(f"http://{started(process)['api']}", secret) as client:
                client.produce("hello", "It works")
                assert client.queue_stats("hello").ready == 1
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS_MAX)
    assert process.returncode == 0
    assert (tmp_path / "data" / "forq.db").exists()


def unit_of(forq: Forq, folder: Path) -> configparser.RawConfigParser:
    forq("init", str(folder), "--systemd")
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names are written as systemd knows them
    unit.read(folder / "forq.service")
    return unit


def test_the_unit_is_for_this_user_and_these_files(forq: Forq, seen_folder: Path):
    folder = seen_folder / "100% $mine"
    unit = unit_of(forq, folder)
    service = unit["Service"]
    escaped = str(folder).replace("%", "%%")
    assert service["User"] == getpass.getuser()
    assert service["ExecStart"].endswith(f' "serve" "--config" "{escaped.replace("$", "$$")}/forq.toml"')
    assert service["ReadWritePaths"] == f'"{escaped}/data"'
    assert int(service["TimeoutStopSec"]) > FORCED_EXIT_SECONDS
    assert int(service["LimitNOFILE"]) >= (
        limits.CONNECTIONS_MAX + limits.UI_CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX
    )
    assert service["Restart"] == "always"
    assert not {"LoadCredential", "Environment", "StateDirectory"} & {*service}


def test_systemd_accepts_the_unit(forq: Forq, seen_folder: Path):
    if shutil.which("systemd-analyze") is None:
        lacks("the systemd unit", "systemd-analyze (on Debian: apt install systemd)", installed=False)
    unit_of(forq, seen_folder)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(seen_folder / "forq.service")],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        env={"PATH": os.environ["PATH"]},
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["a\nExecStart=+/bin/sh", "a\x1b[2J"])
def test_a_folder_whose_name_would_be_lines_of_the_unit_is_refused(forq: Forq, tmp_path: Path, name: str):
    outcome = forq("init", str(tmp_path / name), "--systemd")
    assert (outcome.code, outcome.out) == (2, "")
    assert "choose a folder without line ends" in outcome.err
    assert not list(tmp_path.iterdir())


def test_a_secret_that_others_can_read_is_told_of(forq: Forq, tmp_path: Path):
    (tmp_path / "secret").write_text("s" * 43)
    (tmp_path / "secret").chmod(0o644)
    outcome = forq("init", str(tmp_path))
    assert outcome.code == 1
    assert "others can read it: remove it, or make it yours alone" in outcome.err
    (tmp_path / "secret").chmod(0o600)
    assert forq("init", str(tmp_path)).code == 0


def test_a_unit_for_a_folder_that_its_service_would_not_see_is_refused(forq: Forq):
    with tempfile.TemporaryDirectory(dir="/tmp") as parent:
        folder = Path(parent).resolve() / "forq"
        outcome = forq("init", str(folder), "--systemd")
        assert (outcome.code, outcome.out, folder.exists()) == (2, "", False)
        assert outcome.err == (
            f"forq: {folder}: a systemd service does not see this folder, because it has a /tmp of its own"
            " (PrivateTmp); choose one outside of /tmp and /var/tmp\n"
        )
        assert forq("init", str(folder)).code == 0


def test_variables_that_win_over_the_file_are_told_of(
    forq: Forq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORQ_DB_PATH", "elsewhere.db")
    assert (
        "forq: FORQ_DB_PATH is set in this shell, and wins over the file\n" in forq("init", str(tmp_path)).err
    )
