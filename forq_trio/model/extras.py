"""The extras of the package, and the errors if one is not installed or does not run on this system."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

OF_COMMANDS = {
    "demo": "server",
    "init": "server",
    "serve": "server",
    "config": "server",
    "check": "server",
    "verify": "server",
    "backup": "server",
    "restore": "server",
    "compact": "server",
    "migrate": "server",
    "move": "server",
    "pgq": "postgres",
    "outbox": "postgres",
    "pipeline": "spark",
}
"""The extra of each command that needs more than `cli`, which every command needs."""


def how_to_install(extra: str) -> str:
    """The command that installs an extra. It leaves the package itself, which is there, as it is."""
    return f"pip install 'forq-trio[{extra}]'"


OF_SERVERS = frozenset(
    {"demo", "serve", "check", "verify", "backup", "restore", "compact", "migrate", "move"}
)
"""The commands that open databases."""


class SystemUnsupported(ImportError):
    """This part of the package does not run on this operating system."""


def check_system(what: str) -> None:
    """Raise SystemUnsupported on Windows, because the server needs the locks, syncs and signals of POSIX."""
    if sys.platform == "win32":
        raise SystemUnsupported(
            f"{what} does not run on Windows: use Linux, macOS or WSL. The clients run there"
        )


class ExtraMissing(ImportError):
    """A package is not installed that one of the extras installs."""


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Raise ExtraMissing, which says how to install `extra`, if the body imports a missing package."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "forq_trio").partition(".")[0] == "forq_trio":
            raise
        advice = f"{what} needs more than the client: {how_to_install(extra)}"
        raise ExtraMissing(advice, name=missing.name) from missing
