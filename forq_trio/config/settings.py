"""The settings, each declared once: its section, form, meaning and default.

A setting `x_y` is the command line option `--x-y` (but for secrets, which a process list would show), the environment
variable `FORQ_X_Y`, and the key `x_y` in its section of the TOML file. How they are gathered is in `config`.
"""

# ruff: noqa: RUF009 - _setting is dataclasses.field with our metadata, made for dataclass defaults

import os
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import platformdirs

from forq_trio.config.values import (
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
from forq_trio.model import limits

_HOURS = whole_number(1, limits.TTL_HOURS_MAX)
_SECONDS = whole_number(0, limits.SASQUATCH_SECONDS_MAX)
_INTERVAL = whole_number(1, limits.SASQUATCH_INTERVAL_SECONDS_MAX)
_RECEIVES = whole_number(1, limits.MAX_ATTEMPTS_MAX)


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


def default_reader_pool_size() -> int:
    """Two connections a core and one more (as Forq has it)."""
    return min(2 * (os.cpu_count() or 1) + 1, limits.READER_POOL_SIZE_MAX)


def _setting(section: str, kind: Kind, doc: str, default: Any = MISSING, default_text: str = "") -> Any:
    metadata = {"section": section, "kind": kind, "doc": doc, "default_text": default_text}
    shown = kind is not SECRET
    if callable(default):
        return field(default_factory=default, metadata=metadata, repr=shown)
    return field(default=default, metadata=metadata, repr=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The effective settings of a server. Made by `config.load`, which validates; its text form shows no secret."""

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
    memory: bool = _setting(
        "database",
        BOOLEAN,
        "Keep nothing: work in a fresh temporary directory, in memory where there is one, and remove it at the end.",
        False,
    )
    disk_reserve_mb: int = _setting(
        "database",
        whole_number(0, limits.DISK_RESERVE_MIB_MAX),
        "MiB of the disk that sends leave free, and as much again kept in a file for when it is full; 0: neither.",
        limits.DISK_RESERVE_MIB_DEFAULT,
    )
    reader_pool_size: int = _setting(
        "database",
        whole_number(1, limits.READER_POOL_SIZE_MAX),
        "Connections that read beside the one that writes.",
        default_reader_pool_size,
        f"2 x cores + 1, at most {limits.READER_POOL_SIZE_MAX}",
    )
    sasquatch_enabled: bool = _setting(
        "sasquatch", BOOLEAN, "Serve Sasquatch's endpoints (/send, /receive, ...) beside Forq's.", True
    )
    sasquatch_auth: bool = _setting(
        "sasquatch",
        BOOLEAN,
        "Ask Sasquatch's clients for X-API-Key; false only where nobody but this machine can reach the API.",
        True,
    )
    sasquatch_max_queue_length: int = _setting(
        "sasquatch",
        whole_number(1, limits.QUEUE_MESSAGES_MAX),
        "Messages a queue may hold; /send to a full one is refused.",
        5_000,
    )
    sasquatch_max_message_size_kb: int = _setting(
        "sasquatch",
        whole_number(1, limits.SASQUATCH_MESSAGE_KIB_MAX),
        "The longest message body, in units of 1,024 bytes of UTF-8.",
        256,
    )
    sasquatch_max_request_body_size_kb: int = _setting(
        "sasquatch",
        whole_number(1, limits.SASQUATCH_REQUEST_KIB_MAX),
        "The longest request of endpoints that send no message, in units of 1,024 bytes.",
        1_024,
    )
    sasquatch_default_visibility_timeout: int = _setting(
        "sasquatch", _SECONDS, "Seconds a received message is invisible if the receive says nothing.", 30
    )
    sasquatch_default_max_receives: int = _setting(
        "sasquatch", _RECEIVES, "Receives before a message is poison if the receive says nothing.", 4
    )
    sasquatch_poison_max_receives: int = _setting(
        "sasquatch",
        _RECEIVES,
        "Receives after which what came through /send is deleted whatever its consumers say; at least the default.",
        100,
    )
    sasquatch_default_retention_period: int = _setting(
        "sasquatch",
        whole_number(limits.SASQUATCH_RETENTION_SECONDS_MIN, limits.SASQUATCH_RETENTION_SECONDS_MAX),
        "Seconds until a message is deleted if the send says nothing.",
        345_600,
    )
    sasquatch_default_wait_time_seconds: int = _setting(
        "sasquatch",
        whole_number(0, limits.SASQUATCH_WAIT_SECONDS_MAX),
        "Seconds a receive waits for a message if it says nothing.",
        20,
    )
    sasquatch_default_dedup_time_period: int = _setting(
        "sasquatch",
        whole_number(1, limits.SASQUATCH_SECONDS_MAX),
        "Seconds a deduplication id is remembered if the send says nothing.",
        300,
    )
    sasquatch_default_priority: int = _setting(
        "sasquatch",
        whole_number(limits.PRIORITY_MIN, limits.PRIORITY_MAX),
        "The priority of a message if the send says nothing.",
        limits.PRIORITY_DEFAULT,
    )
    sasquatch_poison_cleanup_interval: int = _setting(
        "sasquatch",
        _INTERVAL,
        "Seconds between two sweeps for failed messages; the sweeps find what was not dealt with at once.",
        60,
    )
    sasquatch_retention_cleanup_interval: int = _setting(
        "sasquatch",
        _INTERVAL,
        "Seconds between two sweeps for expired messages, which go on time anyway.",
        600,
    )
    sasquatch_dedup_cleanup_interval: int = _setting(
        "sasquatch", _INTERVAL, "Seconds between two sweeps for expired deduplication ids.", 60
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
