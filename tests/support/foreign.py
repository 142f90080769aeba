"""Programs that are not ours: what they need is found or installed, and they run beside a server of the tests."""

import os
import shutil
import subprocess
from pathlib import Path

from support.needs import lacks
from support.real_server import environment

SECONDS_MAX = 500


def need(tests: str, program: str, package: str) -> str:
    """Where a program is. tests: whose, as for `lacks`. package: Debian's."""
    found = shutil.which(program)
    if found is None:
        lacks(tests, f"{program} (on Debian: apt install {package})")
    return found


def install(tests: str, folder: Path, *command: str, **more: str) -> None:
    """Run a command that brings something from a registry of packages."""
    done = _done(folder, *command, **more)
    if done.returncode != 0:
        lacks(tests, f"what {Path(command[0]).name} installs: {(done.stdout + done.stderr)[-300:]}")


def run(folder: Path, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command; fails with what it wrote if the command does."""
    done = _done(folder, *command, **more)
    assert done.returncode == 0, f"{' '.join(command)[-300:]}: {done.stdout}{done.stderr}"
    return done


def _done(folder: Path, *command: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


def go_caches(folder: Path) -> dict[str, str]:
    """The variables that have Go keep what it makes and gets in this folder."""
    return {
        "GOCACHE": str(folder / "build"),
        "GOMODCACHE": str(folder / "modules"),
        "GOFLAGS": "-mod=mod -modcacherw",
        "HOME": os.environ.get("HOME", str(folder)),
    }
