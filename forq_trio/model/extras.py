"""The extras of the package beside the client, and the error when one is missing."""

from collections.abc import Iterator
from contextlib import contextmanager

OF_COMMANDS = {
    "serve": "server",
    "work": "server",
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


class ExtraMissing(ImportError):
    """A package is not installed that one of the extras installs."""


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Raises ExtraMissing, which says how to install `extra`, if the body imports a missing package."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "forq_trio").partition(".")[0] == "forq_trio":
            raise
        advice = f"{what} needs more than the client: pip install 'forq-trio[{extra}]'"
        raise ExtraMissing(advice, name=missing.name) from missing
