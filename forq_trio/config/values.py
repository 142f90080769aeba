"""How a setting's text becomes its value: one `Kind` for each form, which also says in words what it allows.

A parse function raises ValueError with what is wrong, worded to follow the setting's name; no secret is
repeated.
"""

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from forq_trio.model import limits

_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_-]{1,63})*\.?"
)
_SHOWN_LENGTH_MAX = 300


class Address(NamedTuple):
    """Where to listen. An empty host means every interface of the machine; port 0 means any free port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A form of value. allowed: completes the sentence "allowed: ..."; metavar: stands for a value in help texts."""

    metavar: str
    allowed: str
    parse: Callable[[str], Any]


def shown(text: str) -> str:
    """`text` quoted, and cut where it is long, for an error line."""
    return repr(text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "…")


def _parse_secret(text: str) -> str:
    if len(text) < limits.AUTH_SECRET_LENGTH_MIN:
        raise ValueError(f"has only {len(text)} characters")
    # It travels in an HTTP header, which strips blanks at the ends and carries nothing else safely.
    if not text.isascii() or not text.isprintable() or text != text.strip():
        raise ValueError("has characters that an HTTP header cannot carry, or blanks at an end")
    return text


def _parse_boolean(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError(f"{shown(text)} is neither true nor false") from None


def _parse_address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if not separator:
        raise ValueError(f"{shown(text)} has no port")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise ValueError(f"{shown(text)} has no port between 0 and 65535")
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError(f"{shown(text)} has no IPv6 address between its brackets") from None
        return Address(host[1:-1], int(port))
    if ":" in host:
        raise ValueError(f"{shown(text)} has an IPv6 address without brackets")
    if host and not _is_host(host):
        raise ValueError(f"{shown(text)} has no valid host before its port")
    return Address(host, int(port))


def _is_host(host: str) -> bool:
    if re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return False
        return True
    return _HOST_NAME.fullmatch(host) is not None


def _parse_database_path(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        raise ValueError(f"{shown(text)} is a directory")
    if not path.parent.is_dir():
        raise ValueError(f"{shown(text)} lies in a directory that does not exist")
    return path


def _parse_readable_file(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise ValueError(f"{shown(text)} is not a file")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{shown(text)} cannot be read: permission denied")
    return path


def choice(*words: str) -> Kind:
    """One of some words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{shown(text)} is not known")
        return text

    return Kind("|".join(words), f"{', '.join(words[:-1])} or {words[-1]}", parse)


def whole_number(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`, both included."""

    def parse(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,18}", text) is None:
            raise ValueError(f"{shown(text)} is not a whole number")
        if not low <= int(text) <= high:
            raise ValueError(f"{int(text)} is out of range")
        return int(text)

    return Kind("NUMBER", f"a whole number from {low} to {high}", parse)


SECRET = Kind("SECRET", f"at least {limits.AUTH_SECRET_LENGTH_MIN} visible ASCII characters", _parse_secret)
BOOLEAN = Kind("true|false", "true or false", _parse_boolean)
ADDRESS = Kind("ADDRESS", "host:port, :port or [IPv6]:port, with port 0 for any free one", _parse_address)
DATABASE_PATH = Kind("FILE", "a file path in a directory that exists", _parse_database_path)
READABLE_FILE = Kind("FILE", "the path of a readable file", _parse_readable_file)
