"""Which release is installed, as the package's metadata says."""

from functools import cache
from importlib import metadata


@cache
def installed_version() -> str | None:
    """The version, or None when the code runs from a checkout that was never installed.

    It is read once: that takes 2 ms, and everybody who opens a broker asks.
    """
    try:
        return metadata.version("forq-trio")
    except metadata.PackageNotFoundError:
        return None
