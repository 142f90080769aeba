"""Which release is installed, as the package's metadata says."""

from importlib import metadata


def installed_version() -> str | None:
    """The version, or None when the code runs from a checkout that was never installed."""
    try:
        return metadata.version("forq-trio")
    except metadata.PackageNotFoundError:
        return None
