"""The settings, each declared once, and how they become one frozen, fully validated `Config`.

A setting `x_y` is the command line option `--x-y` (but for secrets, which a process list would show), the
environment variable `FORQ_X_Y`, and the key `x_y` in its section of the TOML file; the first of these that
is there counts, else the default. An environment variable that is empty counts as not set. Whatever is
wrong, in all sources, is reported at once, by one `ConfigError`.
"""

# ruff: noqa: RUF009 - _setting is dataclasses.field with our metadata, made for dataclass defaults

import os
import ssl
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import platformdirs

from forq_trio import limits
from forq_trio.config_sources import Given, read_environment, read_file, read_options
from forq_trio.config_values import (
    ADDRESS,
    BOOLEAN,
    DATABASE_PATH,
    READABLE_FILE,
    SECRET,
    Address,
    Kind,
    choice,
    whole_number,
)
from forq_trio.errors import ForqError

DEFAULT = "default"
_HOURS = whole_number(1, limits.TTL_HOURS_MAX)


class ConfigError(ForqError):
    """The configuration is not valid. problems: one line for each wrong thing, naming where it was set."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of one setting. default: MISSING when it has to be given; None when it is simply off."""

    name: str
    section: str
    kind: Kind
    doc: str
    default: Any
    default_text: str

    @property
    def variable(self) -> str:
        return f"FORQ_{self.name.upper()}"

    @property
    def option(self) -> str | None:
        """The command line option; None for a secret."""
        return None if self.secret else f"--{self.name.replace('_', '-')}"

    @property
    def secret(self) -> bool:
        return self.kind is SECRET


def default_db_path() -> Path:
    """forq/forq.db in the place the operating system keeps for a user's application data (as Forq does)."""
    return platformdirs.user_data_path("forq", appauthor=False, roaming=True) / "forq.db"


def _setting(section: str, kind: Kind, doc: str, default: Any = MISSING, default_text: str = "") -> Any:
    metadata = {"section": section, "kind": kind, "doc": doc, "default_text": default_text}
    shown = kind is not SECRET
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=shown)
    return field(default=default, metadata=metadata, repr=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective settings of a server. Made by `load`, which validates; its text form shows no secret."""

    auth_secret: str = _setting(
        "server", SECRET, "What clients present as X-API-Key, and the password of the admin UI."
    )
    env: Literal["local", "pro"] = _setting(
        "server",
        choice("local", "pro"),
        "pro sends HSTS and marks cookies Secure; local is for trying things out over plain HTTP.",
        "pro",
    )
    api_addr: Address = _setting("server", ADDRESS, "Where the API listens.", Address("localhost", 8080))
    ui_addr: Address = _setting("server", ADDRESS, "Where the admin UI listens.", Address("localhost", 8081))
    trust_proxy_headers: bool = _setting(
        "server",
        BOOLEAN,
        "Throttle by the rightmost address of X-Forwarded-For; only for use behind a proxy that sets it.",
        False,
    )
    require_receipt: bool = _setting(
        "server",
        BOOLEAN,
        "Refuse an ack or nack of a message by its id alone, without the header X-Forq-Receipt.",
        False,
    )
    queue_ttl_hours: int = _setting(
        "queue",
        _HOURS,
        "Hours a message may stay in its queue; then it moves to the dead-letter queue.",
        limits.QUEUE_TTL_HOURS_DEFAULT,
    )
    dlq_ttl_hours: int = _setting(
        "queue",
        _HOURS,
        "Hours a message may stay in a dead-letter queue; then it is deleted.",
        limits.DLQ_TTL_HOURS_DEFAULT,
    )
    db_path: Path = _setting(
        "database",
        DATABASE_PATH,
        "The database file; made if it is not there, and so is its directory if that is the default one.",
        default_db_path,
        "forq/forq.db in the user's data directory",
    )
    durability: Literal["full", "normal"] = _setting(
        "database",
        choice("full", "normal"),
        "full: what was answered survives a power cut; normal: only a crash of the process.",
        "full",
    )
    tls_cert: Path | None = _setting(
        "tls", READABLE_FILE, "PEM file with the certificate and its chain; turns TLS on.", None
    )
    tls_key: Path | None = _setting(
        "tls", READABLE_FILE, "PEM file with the certificate's private key, not encrypted.", None
    )
    metrics_enabled: bool = _setting("metrics", BOOLEAN, "Serve GET /metrics for Prometheus.", False)
    metrics_auth_secret: str | None = _setting(
        "metrics", SECRET, "What the scraper presents as X-API-Key; needed when metrics are enabled.", None
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting(
        "log",
        choice("debug", "info", "warning", "error"),
        "The least severe events that are written.",
        "info",
    )
    log_format: Literal["auto", "json", "console"] = _setting(
        "log",
        choice("auto", "json", "console"),
        "json: one object a line; console: text for people; auto: text on a terminal, else JSON.",
        "auto",
    )


def _settings() -> Mapping[str, Setting]:
    found = {}
    for each in fields(Config):
        default = each.default if each.default_factory is MISSING else each.default_factory
        text = each.metadata["default_text"] or _default_text(default)
        found[each.name] = Setting(
            each.name, each.metadata["section"], each.metadata["kind"], each.metadata["doc"], default, text
        )
    return MappingProxyType(found)


def _default_text(default: Any) -> str:
    if default is MISSING:
        return "(required)"
    if default is None:
        return "(none)"
    return str(default).lower() if isinstance(default, bool) else str(default)


SETTINGS = _settings()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each value came from: an option, a variable, a TOML key, or DEFAULT."""

    config: Config
    sources: Mapping[str, str]


def load(
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Gather and validate all settings.

    options: setting name -> text, from the command line. environ: None means the process's own. file: the
    TOML file; None means the one that FORQ_CONFIG names, if any. Raises ConfigError with every problem
    found.
    """
    values, sources, problems = _gather(options, environ, file)
    for name, setting in SETTINGS.items():
        if setting.default is MISSING and name not in sources:
            where = f"{setting.variable} (or {name} in [{setting.section}] of the TOML file)"
            problems.append(f"{where}: is not set; allowed: {setting.kind.allowed}")
    problems += _conflicts(values, sources)
    if problems:
        raise ConfigError(problems)
    config = Config(**values)
    return Loaded(config, {name: sources.get(name, DEFAULT) for name in SETTINGS})


def load_db_path(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The database file alone, for work on a file without a server. Raises ConfigError like `load`."""
    values, _, problems = _gather({"db_path": option} if option else None, environ, None)
    if problems:
        raise ConfigError(problems)
    path: Path = values.get("db_path", default_db_path())
    return path


def _gather(
    options: Mapping[str, str] | None, environ: Mapping[str, str] | None, file: Path | None
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Values, where they came from, and problems. A setting whose value is bad has a source but no value."""
    environ = os.environ if environ is None else environ
    if file is None and environ.get("FORQ_CONFIG"):
        file = Path(environ["FORQ_CONFIG"])
    sections = {name: setting.section for name, setting in SETTINGS.items()}
    given: list[Given] = []
    problems: list[str] = []
    given += read_options(options or {})
    given += read_environment(environ, sections, problems)
    if file is not None:
        given += read_file(file, sections, problems)

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, origin, text in given:
        kind = SETTINGS[name].kind
        first = sources.setdefault(name, origin) == origin
        try:
            value = kind.parse(text)
        except (ValueError, OSError) as problem:
            problems.append(f"{origin}: {problem}; allowed: {kind.allowed}")
        else:
            if first:
                values[name] = value
    return values, sources, problems


def _conflicts(values: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """What is wrong between settings that are each fine alone."""
    problems = []
    if values.get("metrics_enabled") and "metrics_auth_secret" not in sources:
        problems.append(
            f"FORQ_METRICS_AUTH_SECRET: is needed when metrics are enabled; allowed: {SECRET.allowed}"
        )
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if name in sources and other not in sources:
            variable = SETTINGS[other].variable
            problems.append(f"{variable}: is needed, for {name} is set; allowed: both or neither")
    if "tls_cert" in values and "tls_key" in values:
        problems += _tls_problems(values["tls_cert"], values["tls_key"])
    api, ui = (values.get(name, SETTINGS[name].default) for name in ("api_addr", "ui_addr"))
    if api == ui and api.port != 0:
        problems.append(f"FORQ_UI_ADDR: {ui} is the API's address too; allowed: an address of its own")
    return problems


def _tls_problems(cert: Path, key: Path) -> list[str]:
    try:
        # The password keeps OpenSSL from asking for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or str(problem)
        return [
            f"FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY ({reason}); allowed: a PEM pair, not encrypted"
        ]
    return []
