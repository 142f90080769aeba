"""`forq` itself, `forq config`, `forq serve`'s way to a configuration, and the commands on files."""

import json
import socket
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import click
import pytest
import trio

from forq_trio import app
from forq_trio.cli import exits, main
from forq_trio.config.settings import Config, default_db_path
from forq_trio.model import durations
from forq_trio.model.errors import StorageOpenError
from forq_trio.system import open_broker
from support.in_process import in_process_server
from support.real_server import environment

from .conftest import NOWHERE, Forq


def test_version_and_help(forq: Forq):
    assert forq("--version").out.startswith("forq-trio ")
    for arguments in (("--help",), ("-h",)):
        outcome = forq(*arguments)
        assert outcome.code == 0
        assert "  receive     Receive messages, once or as they come.\n" in outcome.out
    assert forq("send", "-h").code == 0


def test_without_a_command_there_is_help(forq: Forq):
    outcome = forq()
    assert outcome.code == 2
    assert outcome.err.startswith("Usage: forq ")


def test_a_misspelt_command(forq: Forq):
    outcome = forq("recieve", "orders")
    assert outcome.code == 2
    assert outcome.err.startswith("forq: No such command 'recieve'. Did you mean 'receive'?\n")


@pytest.mark.parametrize(("typed", "meant"), [("help", "--help"), ("version", "--version")])
def test_a_word_that_is_an_option(forq: Forq, typed: str, meant: str):
    outcome = forq(typed)
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        f"forq: No such command {typed!r}. Did you mean {meant!r}?",
    )


def test_the_console_script_exits_with_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("sys.argv", ["forq", "--version"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("forq-trio ")


SERVER = {"pydantic", "trio", "anyio", "hpack", "structlog", "apsw"}
PRETTY = {"rich", "pygments"}
LOADED = """
import json, os, sys
from forq_trio.cli.commands import run
directory, *commands = sys.argv[1:]
children = []
for number, arguments in enumerate(commands):
    if not (child := os.fork()):
        run(arguments.split())
        with open(f"{directory}/{number}", "w") as file:
            json.dump([arguments, *sys.modules], file)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""
"""Runs all commands at once, since most wait a second for a server, and writes a file for each."""

LEFT_OUT = {
    "--help": {"httpx", *SERVER, *PRETTY},
    "send --help": {"httpx", *SERVER, *PRETTY},
    "send orders x": SERVER | PRETTY,
    "receive orders --ack": SERVER | PRETTY,
    "peek orders": SERVER | PRETTY,
    "queue show orders": SERVER | PRETTY,
    "dead redrive orders-dlq --all": SERVER | PRETTY,
    "token list": SERVER | PRETTY,
    "compact": SERVER | PRETTY,
    "verify missing.db": {"httpx", "pydantic", "trio", "anyio", "hpack"},
    "config --help": {"httpx", "trio", "hpack", *PRETTY},
    "serve --api-addr 192.0.2.1:1": {
        "httpx",
        "quart",
        "flask",
        "hypercorn",
        "jinja2",
    },  # without the admin UI, so far
}
"""Heavy packages that a command does not use."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The modules that each of these commands has loaded at its end. No server is where FORQ_URL says."""
    directory = tmp_path_factory.mktemp("loaded")
    command, env = [sys.executable, "-c", LOADED, str(directory), *LEFT_OUT], environment(FORQ_URL=NOWHERE)
    subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=True)
    said = [json.loads(file.read_text()) for file in directory.iterdir()]
    return {arguments: names for arguments, *names in said}


@pytest.mark.parametrize("arguments", LEFT_OUT)
def test_a_command_loads_no_heavy_package_that_it_does_not_use(loaded: dict[str, list[str]], arguments: str):
    """They take longer than the rest of a command."""
    packages = {name.partition(".")[0] for name in loaded[arguments]}
    assert "click" in packages
    assert packages & LEFT_OUT[arguments] == set()


def test_the_help_loads_no_command_and_no_errors(loaded: dict[str, list[str]]):
    """Its time is that of imports."""
    assert "msgspec" not in loaded["--help"]
    own = {"forq_trio", "forq_trio.cli"} | {
        f"forq_trio.cli.{name}" for name in ("by_id", "commands", "exits", "groups")
    }
    assert {name for name in loaded["--help"] if name.startswith("forq_trio")} == own


def test_what_is_unforeseen_is_not_explained_away():
    problem = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        exits.explain(problem)


def test_lengths_of_time():
    lengths = [durations.about(ms) for ms in (-5, 999, 1_000, 59_999, 60_000, 3_600_000, 172_800_000)]
    assert lengths == ["0 ms", "999 ms", "1 s", "59 s", "1 min", "1 h", "2 d"]


def test_an_operating_system_error_is_a_sentence():
    assert exits.explain(click.ClickException("no")) == (["forq: no"], exits.Exit.FAILED)
    assert exits.explain(PermissionError(13, "Permission denied", "/etc/x")) == (
        ["forq: /etc/x: Permission denied"],
        exits.Exit.FAILED,
    )
    lines, _ = exits.explain(OSError(28, "No space left on device"))
    assert lines == ["forq: cannot write the output: No space left on device"]


def test_config_prints_values_with_their_sources_and_no_secret(forq: Forq):
    outcome = forq("config", "--log-level", "debug")
    assert outcome.code == 0
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert ["log", "log_level", "debug", "--log-level"] in rows
    assert ["server", "auth_secret", "********", "FORQ_AUTH_SECRET"] in rows
    assert ["tls", "tls_cert", "(none)", "default"] in rows
    assert ["metrics", "metrics_enabled", "false", "default"] in rows


def test_config_as_json_and_as_an_example(forq: Forq, tmp_path: Path):
    assert json.loads(forq("config", "--json").out)["server"]["api_addr"]["value"] == "localhost:8080"
    example = forq("config", "--example").out
    assert tomllib.loads(example).keys() == {
        "server",
        "ui",
        "queue",
        "database",
        "events",
        "sasquatch",
        "sqs",
        "tls",
        "metrics",
        "log",
    }
    file = tmp_path / "forq.toml"
    file.write_text("[queue]\ndlq_ttl_hours = 7\n")
    assert f"dlq_ttl_hours\t7\t{file} [queue] dlq_ttl_hours\n" in forq("config", "--config", str(file)).out


@pytest.mark.parametrize("command", ["config", "serve"])
def test_a_configuration_that_is_not_right(forq: Forq, monkeypatch: pytest.MonkeyPatch, command: str):
    monkeypatch.setenv("FORQ_ENVV", "x")
    outcome = forq(command, "--api-addr", "localhost", "--durability", "half")
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.splitlines() == [
        "forq: the configuration is not valid:",
        "  FORQ_ENVV: is not a known variable and has no effect; nearest: FORQ_ENV",
        "  --api-addr: 'localhost' has no port; allowed: port (of localhost), host:port, :port or [IPv6]:port,"
        " with port 0 for any free one",
        "  --durability: 'half' is not known; allowed: full or normal",
    ]


def test_serve_without_a_secret_says_what_makes_one(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FORQ_AUTH_SECRET")
    outcome = forq("serve")
    (line,) = outcome.err.splitlines()[1:]
    assert outcome.code == 2
    assert line.startswith(
        "  FORQ_AUTH_SECRET (or auth_secret in [server] of the TOML file): is not set; allowed: "
    )
    assert line.endswith("; `forq init` makes one")


def test_a_variable_that_is_not_known_is_told_of_and_ignored(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORQ_ENVV", "x")
    monkeypatch.setenv("FORQ_AUTH_SECRET", "s" * 40)
    outcome = forq("config")
    assert outcome.code == 0
    assert outcome.err == "forq: FORQ_ENVV: is not a known variable and has no effect; nearest: FORQ_ENV\n"


def test_serve_passes_the_configuration_on(forq: Forq, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    seen: list[Config] = []

    def serve(settings: Config) -> int:
        seen.append(settings)
        return 7

    monkeypatch.setattr(app, "run", serve)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert forq("serve", "--api-addr", ":0").code == 7
    assert seen[0].api_addr.port == 0
    assert seen[0].db_path == default_db_path()


def test_where_the_default_place_cannot_be_used_serve_says_how_to_name_another(
    forq: Forq, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def serve(settings: Config) -> int:
        raise StorageOpenError(f"{settings.db_path} cannot be created")

    monkeypatch.setattr(app, "run", serve)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    outcome = forq("serve")
    assert outcome.code == exits.Exit.USAGE
    sentence = f"forq: {tmp_path}/forq/forq.db cannot be created; FORQ_DB_PATH or --db names another place\n"
    assert outcome.err == sentence
    assert forq("serve", "--db", "other.db").err == f"forq: {Path.cwd()}/other.db cannot be created\n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with two messages."""
    path = tmp_path / "forq.db"

    async def fill() -> None:
        async with open_broker(f"sqlite:///{path}") as broker:
            await broker.produce("orders", "a")
            await broker.produce("orders", "b")

    trio.run(fill)
    return path


def test_check(forq: Forq, database: Path, monkeypatch: pytest.MonkeyPatch):
    outcome = forq("check", "--db", str(database))
    assert outcome.code == 0
    assert outcome.out.startswith(f"{database} is sound: 2 messages in 1 queue, schema version ")
    monkeypatch.setenv("FORQ_DB_PATH", str(database))
    report = json.loads(forq("check", "--json").out)
    assert (report["ok"], report["messages"], report["problems"]) == (True, 2, [])


def test_check_tells_what_is_wrong(forq: Forq, database: Path):
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE queue_counts SET ready = 17")
    outcome = forq("check", "--db-path", str(database))
    assert outcome.code == 1
    assert outcome.out
    assert f"forq: {database} has 1 problem: 2 messages in 1 queue\n" in outcome.err
    assert json.loads(forq("check", "--db-path", str(database), "--json").out)["ok"] is False


@pytest.mark.parametrize("terminal", [False, True])
def test_backup_and_verify(forq: Forq, database: Path, tmp_path: Path, terminal: bool):
    target = tmp_path / "backup.db"
    outcome = forq("backup", str(target), "--db", str(database), terminal=terminal)
    assert outcome.code == 0
    assert outcome.out == f"{database} is backed up to {target}: {target.stat().st_size:,} bytes\n"
    assert ("copying" in outcome.err) is terminal
    assert forq("verify", str(target)).out.startswith(f"{target} is sound: 2 messages in 1 queue")

    outcome = forq("backup", str(target), "--db", str(database))
    assert (outcome.code, outcome.err) == (1, f"forq: {target} exists already\n")
    outcome = forq("backup", str(target), "--db", str(database), "--overwrite", "--json")
    assert json.loads(outcome.out) == {
        "source": str(database),
        "target": str(target),
        "bytes": target.stat().st_size,
    }


def test_restore(forq: Forq, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    backup, target = tmp_path / "backup.db", tmp_path / "other" / "forq.db"
    assert forq("backup", str(backup), "--db", str(database)).code == 0
    outcome = forq("restore", str(backup), str(target))
    size = backup.stat().st_size
    assert outcome.out == f"{target} is restored from {backup}: {size:,} bytes\n"
    assert forq("check", "--db", str(target)).out.startswith(f"{target} is sound: 2 messages in 1 queue")
    monkeypatch.setenv("FORQ_DB_PATH", str(target))
    outcome = forq("restore", str(backup), terminal=True)
    assert outcome.code == 0
    assert "copying" in outcome.err
    (replaced,) = target.parent.glob("*.replaced-*")
    assert outcome.out.splitlines()[1] == f"what was there is now {replaced}"
    replaced.unlink()
    report = json.loads(forq("restore", str(backup), "--json").out)
    (replaced,) = target.parent.glob("*.replaced-*")
    assert report == {
        "backup": str(backup),
        "database": str(target),
        "bytes": size,
        "replaced": str(replaced),
    }
    with in_process_server(database=target):
        outcome = forq("restore", str(backup))
    assert (outcome.code, outcome.err) == (1, f"forq: {target} is in use by another forq server\n")


def test_compact(forq: Forq, database: Path):
    before = database.stat().st_size
    outcome = forq("compact", "--db", str(database), terminal=True)
    after = database.stat().st_size
    assert outcome.out == f"{database} is compacted: {after:,} bytes, {before:,} before\n"
    assert "writing" in outcome.err
    report = json.loads(forq("compact", "--db", str(database), "--json").out)
    assert report == {"database": str(database), "bytes": after, "before": after}
    with in_process_server(database=database):
        outcome = forq("compact", "--db", str(database))
    assert (outcome.code, outcome.err) == (1, f"forq: {database} is in use by another forq server\n")


@pytest.mark.parametrize("command", ["check", "verify"])
def test_a_file_that_is_not_there_or_not_ours(forq: Forq, tmp_path: Path, command: str):
    def call(path: Path) -> tuple[int, str]:
        outcome = forq(command, *(("--db", str(path)) if command == "check" else (str(path),)))
        assert outcome.out == ""
        return outcome.code, outcome.err

    assert call(tmp_path / "none.db") == (1, f"forq: {tmp_path / 'none.db'} does not exist\n")
    text = tmp_path / "text.db"
    text.write_text("not a database at all " * 100)
    code, err = call(text)
    assert code == 1
    assert err.startswith("forq: ")
    assert err.count("\n") == 1


def test_where_nobody_named_a_file_the_advice_is_how_to_name_one(
    forq: Forq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    advice = f"forq: {default_db_path()} does not exist; FORQ_DB_PATH or --db names another place\n"
    for arguments in (("check",), ("backup", str(tmp_path / "copy.db"))):
        outcome = forq(*arguments)
        assert (outcome.code, outcome.out, outcome.err) == (1, "", advice)


@pytest.mark.usefixtures("logging_as_before")
def test_a_port_in_use_is_one_sentence(forq: Forq, tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome = forq("serve", "--api-addr", address, "--db", str(tmp_path / "forq.db"))
    assert (outcome.code, outcome.err) == (
        1,
        f"forq: cannot listen on {address}: Address already in use; "
        "FORQ_API_ADDR names another address, port 0 any free one\n",
    )


@pytest.mark.usefixtures("logging_as_before")
def test_two_servers_on_one_file(forq: Forq, tmp_path: Path):
    with in_process_server(database=tmp_path / "forq.db"):
        outcome = forq("serve", "--api-addr", "127.0.0.1:0", "--db", str(tmp_path / "forq.db"))
    assert outcome.code == 2
    assert outcome.err.startswith("forq: ")
    assert outcome.err.count("\n") == 1
