"""Where the server of this environment is, for clients, workers and commands: there is one rule for all.

It is at FORQ_URL; without that where a server with the settings of this environment listens; without any of these at
the default address. This module imports little, because `forq health` runs every half minute.
"""

from collections.abc import Mapping
from pathlib import Path

from forq_trio.client.address import DEFAULT_URL
from forq_trio.model.client_errors import InvalidServerUrl

_EVERY_INTERFACE = ("", "0.0.0.0", "[::]")


def url_of(environ: Mapping[str, str]) -> str:
    """The URL of the server of this environment. Raises InvalidServerUrl if its file of settings cannot be read."""
    return environ.get("FORQ_URL") or configured_url(environ)


def names_a_server(environ: Mapping[str, str]) -> bool:
    """Whether this environment says where the server is."""
    return any(environ.get(name) for name in ("FORQ_URL", "FORQ_API_ADDR", "FORQ_CONFIG"))


def configured_url(environ: Mapping[str, str]) -> str:
    """The URL, for clients on this machine, of a server with the settings of this environment.

    Of these it reads only the address and whether there is TLS. Raises InvalidServerUrl if the file of settings cannot
    be read; an address that is not valid makes a URL that is not.
    """
    file = _file_of(environ["FORQ_CONFIG"]) if environ.get("FORQ_CONFIG") else {}
    address = environ.get("FORQ_API_ADDR") or _key(file, "server", "api_addr")
    host, _, port = (address or DEFAULT_URL.partition("//")[2]).rpartition(":")
    scheme = "https" if environ.get("FORQ_TLS_CERT") or _key(file, "tls", "tls_cert") else "http"
    return f"{scheme}://{'localhost' if host in _EVERY_INTERFACE else host}:{port}"


def _file_of(path: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise InvalidServerUrl(f"{path}: cannot be read ({reason})") from None
    except (ValueError, RecursionError):  # nested too deeply
        raise InvalidServerUrl(f"{path}: is not valid TOML") from None


def _key(file: Mapping[str, object], section: str, key: str) -> str:
    found = file.get(section)
    value = found.get(key) if isinstance(found, dict) else None
    return str(value) if isinstance(value, str | int) else ""  # a port alone is a number
