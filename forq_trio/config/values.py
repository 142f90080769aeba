"""The types of the settings' values: each reads its value from text, and says in words what it allows.

The ValueErrors of readers are worded to follow the setting's name, and repeat no secret. pydantic alone would accept
more than we promise (`yes` and `on` for true, `1_000` and ` 5 ` for numbers), so we read booleans ourselves and check
the digits of a number first. Bounds and choices are pydantic's.
"""

import ipaddress
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from forq_trio.model import limits
from forq_trio.model.access.secrets import why_no_secret
from forq_trio.model.amazon_names import ACCOUNT, REGION

_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_-]{1,63})*\.?"
)
_SHOWN_LENGTH_MAX = 300


class HostPort(NamedTuple):
    """Where to listen. An empty host means every interface of the machine; port 0 means any free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower().rstrip(".") == "localhost"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Notation:
    """How a value is written."""

    metavar: str  # its placeholder in help texts
    allowed: str  # completes "allowed: ..."


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts."""

    name: str  # follows the number


def shown(text: str) -> str:
    """`text` quoted, and cut where it is long, for an error line."""
    return repr(text if len(text) <= _SHOWN_LENGTH_MAX else text[:_SHOWN_LENGTH_MAX] + "…")


def _check_secret(text: str) -> str:
    if len(text) < limits.AUTH_SECRET_LENGTH_MIN:
        raise ValueError(f"has only {len(text)} characters")
    if (reason := why_no_secret(text)) is not None:
        raise ValueError(reason)
    return text


def _check_database_url(text: str) -> str:
    if not text.startswith(("postgresql://", "postgres://")):
        quoted = text[:1] in ("'", '"')
        raise ValueError(f"does not begin with postgresql://{', but with a quote' if quoted else ''}")
    if text != text.strip() or not text.isprintable():
        raise ValueError("has blanks at an end, or control characters")
    return text


def _check_digits(text: str) -> str:
    if re.fullmatch(r"[+-]?[0-9]{1,18}", text) is None:
        raise ValueError(f"{shown(text)} is not a whole number")
    return text


def _read_boolean(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError(f"{shown(text)} is neither true nor false") from None


def _read_address(text: str) -> HostPort:
    host, separator, port = text.rpartition(":")
    if not separator and text.isascii() and text.isdigit():
        host, separator = "localhost", ":"
    if not separator:
        raise ValueError(f"{shown(text)} has no port")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise ValueError(f"{shown(text)} has no port between 0 and 65535")
    if host.startswith("[") and host.endswith("]"):
        try:
            ipaddress.IPv6Address(host[1:-1])
        except ValueError:
            raise ValueError(f"{shown(text)} has no IPv6 address between its brackets") from None
        return HostPort(host[1:-1], int(port))
    if ":" in host:
        raise ValueError(f"{shown(text)} has an IPv6 address without brackets")
    if host and not _is_host(host):
        raise ValueError(f"{shown(text)} has no valid host before its port")
    return HostPort(host, int(port))


def _is_host(host: str) -> bool:
    if re.fullmatch(r"[0-9.]+", host):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            return False
        return True
    return _HOST_NAME.fullmatch(host) is not None


def _read_path(text: str) -> Path:
    if "\0" in text:
        raise ValueError(f"{shown(text)} has a NUL character, which no path can have")
    try:
        path = Path(text).expanduser().absolute()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # Path.exists() is silent about other errors, too, from Python 3.14 on
    except (OSError, RuntimeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem).rstrip(".")
        raise ValueError(f"{shown(text)} cannot be looked at: {reason}") from None
    return path


def _read_database_path(text: str) -> Path:
    path = _read_path(text)
    if path.is_dir():
        raise ValueError(f"{shown(text)} is a directory")
    return path


def _read_directory(text: str) -> Path:
    path = _read_path(text)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{shown(text)} is not a directory")
    return path


def _read_readable_file(text: str) -> Path:
    path = _read_path(text)
    if not path.is_file():
        raise ValueError(f"{shown(text)} is not a file")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{shown(text)} cannot be read: permission denied")
    return path


WholeNumber = Annotated[int, BeforeValidator(_check_digits)]
"""A setting adds its bounds: `Annotated[WholeNumber, Field(ge=1, le=9)]`."""
Hours = Annotated[WholeNumber, Unit("hours")]
Seconds = Annotated[WholeNumber, Unit("seconds")]
Kibibytes = Annotated[WholeNumber, Unit("KiB")]
Mebibytes = Annotated[WholeNumber, Unit("MiB")]


def _read_base_path(text: str) -> str:
    if text in ("", "/"):
        return ""
    if re.fullmatch(r"(/[A-Za-z0-9._~-]{1,64}){1,8}", text) is None or {".", ".."} & set(text.split("/")):
        raise ValueError(f"{shown(text)} is no path such as /forq")
    return text


class Names(tuple[str, ...]):
    """Names of hosts."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(self)


def _read_host_names(text: str) -> Names:
    names = Names(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name != "*" and not _is_host(name):
            raise ValueError(f"{shown(name)} is no name of a host")
    return names


def _check_account(text: str) -> str:
    if re.fullmatch(ACCOUNT, text) is None:
        raise ValueError(f"{shown(text)} is not twelve digits")
    return text


def _check_region(text: str) -> str:
    if re.fullmatch(REGION, text) is None:
        raise ValueError(f"{shown(text)} is no region such as eu-west-1")
    return text


AccountNumber = Annotated[str, AfterValidator(_check_account), Notation("DIGITS", "twelve digits")]
Region = Annotated[str, AfterValidator(_check_region), Notation("REGION", "a region such as eu-west-1")]
Boolean = Annotated[bool, PlainValidator(_read_boolean), Notation("true|false", "true or false")]
Secret = Annotated[
    str,
    AfterValidator(_check_secret),
    Notation("SECRET", f"at least {limits.AUTH_SECRET_LENGTH_MIN} visible ASCII characters"),
]
DatabaseUrl = Annotated[
    str, AfterValidator(_check_database_url), Notation("URL", "postgresql://user@host/database")
]
ListenAddress = Annotated[
    HostPort,
    PlainValidator(_read_address),
    Notation("ADDRESS", "port (of localhost), host:port, :port or [IPv6]:port, with port 0 for any free one"),
]
BasePath = Annotated[
    str,
    PlainValidator(_read_base_path),
    Notation("PATH", "empty, or a path such as /forq without a slash at its end"),
]
HostNames = Annotated[
    Names, PlainValidator(_read_host_names), Notation("NAMES", "names of hosts, separated by commas, or *")
]
DatabasePath = Annotated[Path, PlainValidator(_read_database_path), Notation("FILE", "a file path")]
DirectoryPath = Annotated[
    Path, PlainValidator(_read_directory), Notation("DIRECTORY", "the path of a directory")
]
ReadableFile = Annotated[
    Path, PlainValidator(_read_readable_file), Notation("FILE", "the path of a readable file")
]
