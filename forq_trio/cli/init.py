"""`forq init`: what a server needs before its first start, where nothing is there yet."""

import getpass
import os
import secrets
import shlex
import stat
import sys
from importlib.resources import files
from pathlib import Path

import click

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.options import json_option
from forq_trio.cli.output import echo, print_json

CONFIG_NAME = "forq.toml"
SECRET_BYTES = 32
_WIN_OVER_IT = ("FORQ_AUTH_SECRET", "FORQ_AUTH_SECRET_FILE", "FORQ_DB_PATH", "FORQ_DB_URL")
"""Variables that say what the file says, too."""
PRIVATE = 0o600
PUBLIC = 0o644
_HIDDEN = ("/tmp", "/var/tmp")
"""What a unit with PrivateTmp does not see of the machine's."""
_WRITTEN = "# What `forq init --systemd` wrote; docs/deploy.md explains the important lines."


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=".", required=False)
@click.option("--systemd", is_flag=True, help="Write a systemd unit, too.")
@json_option
def init(folder: Path, systemd: bool, as_json: bool) -> None:
    """Write a secret, a folder for the database and a TOML file into FOLDER, by default the current one.

    What is there already stays as it is.

    \f
    `forq serve --config FOLDER/forq.toml` starts the server; the file has every setting with a comment, and names the
    secret by `auth_secret_file`. The unit is for the user who writes it, and for a folder outside of /tmp.
    """
    folder = folder.resolve()
    if not str(folder).isprintable():  # a line end would be one of the TOML file and of the unit, too
        raise CliFailure(
            f"{str(folder)!r}: choose a folder without line ends and control characters", Exit.USAGE
        )
    if systemd and any(map(folder.is_relative_to, _HIDDEN)):
        raise CliFailure(
            f"{folder}: a systemd service does not see this folder, because it has a /tmp of its own (PrivateTmp);"
            " choose one outside of /tmp and /var/tmp",
            Exit.USAGE,
        )
    folder.mkdir(parents=True, exist_ok=True)
    secret, data, config = folder / "secret", folder / "data", folder / CONFIG_NAME
    wrote = {
        secret: _write_new(secret, f"{secrets.token_urlsafe(SECRET_BYTES)}\n", PRIVATE),
        data: _make_new(data),
        config: _write_new(config, _settings(secret, data), PRIVATE),
    }
    if systemd:
        unit = folder / "forq.service"
        wrote[unit] = _write_new(unit, _unit(config, data), PUBLIC)
    commands = _start_by_systemd(folder) if systemd else [f"forq serve --config {shlex.quote(str(config))}"]
    if not wrote[secret]:
        _check_private(secret)
    if as_json:
        print_json(
            {
                "wrote": [str(path) for path, is_new in wrote.items() if is_new],
                "present": [str(path) for path, is_new in wrote.items() if not is_new],
                "next": commands,
            }
        )
        return
    for path, is_new in wrote.items():
        echo(f"{'wrote' if is_new else 'is there already:'} {path}")
    echo("\nNext, start the server:\n")
    for command in commands:
        echo(f"  {command}")
    echo("\nand, in another terminal, send a first message:\n")
    echo(f'  export FORQ_AUTH_SECRET="$(cat {shlex.quote(str(secret))})"')
    echo("  forq send hello 'It works'")
    echo("\nThe admin UI is at http://localhost:8081; its password is the secret.")
    for name in filter(os.environ.get, _WIN_OVER_IT):
        echo(f"forq: {name} is set in this shell, and wins over the file", err=True)


def _check_private(secret: Path) -> None:
    """Raises CliFailure if the secret that is there is somebody else's, or others can read it."""
    found = secret.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise CliFailure(
            f"{secret} is there, and others can read it: remove it, or make it yours alone (chmod 600)"
        )


def _write_new(path: Path, text: str, mode: int) -> bool:
    """Write a file that is not there; False if it is. One that cannot be written whole is removed again."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        return False
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except BaseException:
        path.unlink()
        raise
    return True


def _make_new(folder: Path) -> bool:
    """Make a folder for this user alone; False if it is there."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise CliFailure(f"{folder} is there, and is no folder") from None
        return False
    return True


def _settings(secret: Path, data: Path) -> str:
    from forq_trio.config.report import example

    return example({"auth_secret_file": str(secret), "db_path": str(data / "forq.db")})


def _unit(config: Path, data: Path) -> str:
    """The unit of docs/deploy.md for this user and this installation, whose files are not where the page has them."""
    forq = Path(sys.executable).with_name("forq")
    command = [str(forq)] if forq.exists() else [sys.executable, "-m", "forq_trio"]
    words = (*command, "serve", "--config", str(config))
    start = " ".join(_quoted(word).replace("$", "$$") for word in words)
    here = {
        "User": f"User={getpass.getuser()}",
        "ExecStart": f"ExecStart={start}",
        "StateDirectory": f"ReadWritePaths={_quoted(str(data))}",
        "ProtectHome": "ProtectHome=read-only",
        # the file of settings, which `start` names, names the secret
        "# The secret reaches the server as a file that it alone can read, not as a variable.": None,
        "LoadCredential": None,
        "Environment": None,
        "StateDirectoryMode": None,
    }
    _, *lines = (files("forq_trio.cli") / "forq.service").read_text(encoding="utf-8").splitlines()
    kept = [here.get(line.partition("=")[0], line) for line in lines]
    return "\n".join([_WRITTEN, *[line for line in kept if line is not None]]) + "\n"


def _quoted(word: str) -> str:
    """One word of a unit, in which % has a meaning."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{word}"'


def _start_by_systemd(folder: Path) -> list[str]:
    return [
        f"sudo cp {shlex.quote(str(folder / 'forq.service'))} /etc/systemd/system/",
        "sudo systemctl daemon-reload",
        "sudo systemctl enable --now forq",
    ]
