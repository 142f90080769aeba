"""The installed release, from the package's metadata."""

from functools import cache
from importlib import metadata


@cache
def installed_version() -> str | None:
    """The version, or None when the code runs from a checkout that was never installed.

    It is read only once, because that takes 2 ms and every open of a broker needs it.
    """
    try:
        return metadata.version("forq-trio")
    except metadata.PackageNotFoundError:
        return None


def version_line() -> str:
    """What `forq --version` prints."""
    return f"forq-trio {installed_version() or '(not installed)'}"
