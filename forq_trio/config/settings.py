"""The settings, each declared once: its name, type, bounds, default and, below it, its meaning.

A setting `x_y` is the command line option `--x-y` (but for secrets, which a process list would show), the environment
variable `FORQ_X_Y`, and the key `x_y` in its section of the TOML file: the name of its class, in small letters.
`repr=False` marks a secret. `SETTINGS` has all declarations, for the code that reads, reports or documents settings.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin

import platformdirs
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from forq_trio.config.values import (
    AccountNumber,
    BasePath,
    Boolean,
    DatabasePath,
    DatabaseUrl,
    DirectoryPath,
    HostNames,
    HostPort,
    Hours,
    Kibibytes,
    ListenAddress,
    Mebibytes,
    Names,
    Notation,
    ReadableFile,
    Region,
    Seconds,
    Secret,
    Unit,
    WholeNumber,
)
from forq_trio.model import limits


def default_db_path() -> Path:
    """forq/forq.db in the operating system's directory for a user's application data, as in Forq.

    A user without a home directory, such as a number without a name in a container, gets "/" as one, as in Docker.
    """
    try:
        directory = platformdirs.user_data_path("forq", appauthor=False, roaming=True)
    except RuntimeError:
        directory = Path("/.local/share/forq")
    return directory / "forq.db"


def default_reader_pool_size() -> int:
    """Two connections a core and one more, as in Forq."""
    return min(2 * (os.cpu_count() or 1) + 1, limits.READER_POOL_SIZE_MAX)


class Section(BaseModel):
    """The settings of one section of the TOML file.

    The first paragraph below a setting is its meaning; the others are for docs/reference/settings.md.
    """

    model_config = ConfigDict(use_attribute_docstrings=True, defer_build=True)


class ServerSection(Section):
    auth_secret: Secret = Field(repr=False, examples=[""])
    """What clients present as X-API-Key, and the password of the admin UI."""
    env: Literal["local", "pro"] = "pro"
    """pro sends HSTS and marks cookies Secure; local is for trying things out over plain HTTP."""
    api_addr: ListenAddress = HostPort("localhost", 8080)
    """Where the API listens.

    A host name or IP address with a port. Without a host (`:8080`) the server listens on every interface. The default,
    `localhost`, can be reached only from the same machine.
    """
    ui_addr: ListenAddress = HostPort("localhost", 8081)
    """Where the admin UI listens."""
    trust_proxy_headers: Boolean = False
    """Take a client's address from X-Forwarded-For, the rightmost one there; only behind a proxy that sets it."""
    require_receipt: Boolean = False
    """Refuse an ack or nack of a message by its id alone, without the header X-Forq-Receipt."""
    h2c: Literal["on", "off"] = "on"
    """on: HTTP/2 in addition to HTTP/1.1, over TLS, and without TLS by prior knowledge; off: HTTP/1.1 alone."""


class UiSection(Section):
    ui_enabled: Boolean = True
    """Serve the admin UI at ui_addr."""
    ui_base_path: BasePath = Field("", json_schema_extra={"default": "(none)"}, examples=[""])
    """The path under which a proxy shows the UI; the proxy may forward or remove it."""
    ui_hosts: HostNames = Field(Names(), json_schema_extra={"default": "(none)"}, examples=[""])
    """Host names of the UI, besides localhost and IP addresses; *: any name, for use behind a proxy that checks it."""


class QueueSection(Section):
    queue_ttl_hours: Hours = Field(limits.QUEUE_TTL_HOURS_DEFAULT, ge=1, le=limits.TTL_HOURS_MAX)
    """Hours a message may stay in its queue; then it moves to the dead-letter queue."""
    dlq_ttl_hours: Hours = Field(limits.DLQ_TTL_HOURS_DEFAULT, ge=1, le=limits.TTL_HOURS_MAX)
    """Hours a message may stay in a dead-letter queue; then it is deleted."""


class DatabaseSection(Section):
    db_path: DatabasePath = Field(
        default_factory=default_db_path,
        json_schema_extra={"default": "forq/forq.db in the user's data directory"},
        examples=["/var/lib/forq/forq.db"],
    )
    """The database file; it and its directory are created if they do not exist.

    The user's data directory is `$XDG_DATA_HOME` (else `~/.local/share`) on Linux, `~/Library/Application Support` on
    macOS and `%APPDATA%` on Windows. In production it is better to name the file. A database with a hard link is not
    opened.

    The write-ahead log next to it (`forq.db-wal`) grows to some 64 MiB under load and keeps that length while the
    server runs, because it is written over. It is removed when the server stops. While checkpoints fail, or a long
    read or backup uses it, it grows with each commit, until sends are refused for lack of space; the System page,
    `forq_log_bytes` and `forq_checkpoint_failed` show that.
    """
    db_url: DatabaseUrl | None = Field(
        None,
        repr=False,
        json_schema_extra={"default": "(none)"},
        examples=["postgresql://forq@localhost/forq"],
    )
    """A PostgreSQL database instead of the file, for several servers (docs/postgres.md); pooled=yes: through a pool."""
    db_listen_url: DatabaseUrl | None = Field(
        None, repr=False, json_schema_extra={"default": "(none)"}, examples=["postgresql://forq@db/forq"]
    )
    """The same database without the pool of FORQ_DB_URL, so that the server can listen to other servers."""
    db_replica_url: DatabaseUrl | None = Field(
        None, repr=False, json_schema_extra={"default": "(none)"}, examples=["postgresql://forq@replica/forq"]
    )
    """A streaming replica of the PostgreSQL database; pages, lists, searches and exports read from it."""
    durability: Literal["full", "normal"] = "full"
    """full: an answered change survives a power cut; normal: it survives only a crash of the process.

    With `full`, every change is on disk before it is answered. With `normal` it is only handed to the operating system:
    faster on slow disks, but answered changes of the last moments before a power cut can be lost.
    """
    memory: Boolean = False
    """Keep nothing: use a new temporary directory, in /dev/shm if there is one, and remove it at the end.

    Then db_path is not used, and durability counts as `none`. The next start removes what a killed process left behind.
    """
    disk_reserve_mb: Mebibytes = Field(limits.DISK_RESERVE_MIB_DEFAULT, ge=0, le=limits.DISK_RESERVE_MIB_MAX)
    """MiB of disk that sends leave free, and the size of the reserve file; 0, or at least 8 (with history, 32).

    Sends that would leave less free are answered 503 `forq.storage_full` until a quarter more is free; everything else
    works. Free pages of the database file count as free space: once messages are consumed, sends use their pages. What
    pipelines have leased counts a second time, and a quarter of it, and up to 16 MiB for the log, because to show
    leased messages, or change them by id, takes so much. Such calls are refused only once less than half of the
    reserve is free, and leases once little of it is (with the history on, leases are copies, and are refused like
    sends).

    The server checks the disk every two seconds, and more often while much is written to a nearly full one. If another
    program fills the disk, the server deletes the file `<db_path>.reserve`, so that acks, nacks, extensions, receives
    and checkpoints have space, and makes it again when that and a quarter more is free. Another program can take that
    space as well, which can stop acks ([what is not promised](docs/reliability.md#what-is-not-promised)). The reserve
    file is removed when the server stops.

    With 0, or with memory, there is no such file, and sends leave 8 MiB free (with the history on, 32): without them
    nothing that is stored could be consumed. On file systems that never write in place (Btrfs, ZFS) free pages and the
    log need some of the free space as well. On a file system that compresses, the reserve file reserves nothing.
    """
    backup_dir: DirectoryPath | None = Field(
        None, json_schema_extra={"default": "backups, next to the database"}, examples=["/var/backups/forq"]
    )
    """The directory for the server's backups; the first backup creates it.

    Backups are called `<database>-<UTC time>` (`forq-20260131T030000Z.db`). Only files with such names are ever
    removed, and only after a new backup. Two servers whose databases have the same name need a directory each.
    [Backups](docs/reliability.md#backups) says more.
    """
    backup_every_hours: Hours = Field(0, ge=0, le=limits.BACKUP_EVERY_HOURS_MAX)
    """Hours between two backups that the server makes; 0: only on request.

    The interval counts from the latest file, also after restarts; a failed backup is tried again after ten minutes.
    """
    backup_keep: WholeNumber = Field(limits.BACKUP_KEEP_DEFAULT, ge=1, le=limits.BACKUP_KEEP_MAX)
    """How many backups to keep; after a new one the oldest are removed."""
    history: Literal["on", "off"] = "off"
    """Keep finished messages, with their contents and how they ended."""
    history_hours: Hours = Field(limits.RETENTION_HOURS_DEFAULT, ge=1, le=limits.TTL_HOURS_MAX)
    """Hours until a finished message is removed, even after the history was turned off."""
    history_max_mib: Mebibytes = Field(limits.RETENTION_MIB_DEFAULT, ge=1, le=limits.RETENTION_MIB_MAX)
    """MiB of finished messages in all; beyond that the oldest are removed."""
    reader_pool_size: WholeNumber = Field(
        default_factory=default_reader_pool_size,
        json_schema_extra={"default": f"2 x cores + 1, at most {limits.READER_POOL_SIZE_MAX}"},
        ge=1,
        le=limits.READER_POOL_SIZE_MAX,
    )
    """Connections for reading, besides the one that writes."""


class EventsSection(Section):
    events: Literal["on", "off"] = "off"
    """Store what happens to messages as lifecycle events."""
    events_hours: Hours = Field(limits.RETENTION_HOURS_DEFAULT, ge=1, le=limits.EVENTS_HOURS_MAX)
    """Hours until an event is removed."""
    events_max_mib: Mebibytes = Field(limits.RETENTION_MIB_DEFAULT, ge=1, le=limits.RETENTION_MIB_MAX)
    """MiB of events in all; beyond that the oldest are removed."""


class SasquatchSection(Section):
    sasquatch_enabled: Boolean = True
    """Serve Sasquatch's endpoints (/send, /receive, ...) in addition to Forq's."""
    sasquatch_auth: Boolean = True
    """Require X-API-Key from Sasquatch's clients; false only where nobody but this machine can reach the API.

    It may be false only if api_addr is an address of this machine alone (`localhost`, `127.0.0.1`, `[::1]`). Requests
    from web pages of other sites, and for other hosts, are then refused.
    """
    sasquatch_max_queue_length: WholeNumber = Field(5_000, ge=1, le=limits.QUEUE_MESSAGES_MAX)
    """Messages a queue may hold; /send to a full one is refused."""
    sasquatch_max_message_size_kb: Kibibytes = Field(256, ge=1, le=limits.SASQUATCH_MESSAGE_KIB_MAX)
    """The longest message body, in units of 1,024 bytes of UTF-8."""
    sasquatch_max_request_body_size_kb: Kibibytes = Field(1_024, ge=1, le=limits.SASQUATCH_REQUEST_KIB_MAX)
    """The longest request of endpoints that send no message, in units of 1,024 bytes."""
    sasquatch_default_visibility_timeout: Seconds = Field(30, ge=0, le=limits.SASQUATCH_SECONDS_MAX)
    """Seconds a received message is invisible if the receive says nothing."""
    sasquatch_default_max_receives: WholeNumber = Field(4, ge=1, le=limits.SASQUATCH_POISON_RECEIVES_MAX)
    """Receives after which a message from /send is poison, unless the receive says otherwise."""
    sasquatch_poison_max_receives: WholeNumber = Field(100, ge=1, le=limits.SASQUATCH_POISON_RECEIVES_MAX)
    """Receives after which a message from /send is deleted, whatever its consumers say; at least the default."""
    sasquatch_default_retention_period: Seconds = Field(
        345_600, ge=limits.SASQUATCH_RETENTION_SECONDS_MIN, le=limits.SASQUATCH_RETENTION_SECONDS_MAX
    )
    """Seconds until a message is deleted if the send says nothing."""
    sasquatch_default_wait_time_seconds: Seconds = Field(20, ge=0, le=limits.SASQUATCH_WAIT_SECONDS_MAX)
    """Seconds a receive waits for a message if the receive says nothing."""
    sasquatch_default_dedup_time_period: Seconds = Field(300, ge=1, le=limits.SASQUATCH_SECONDS_MAX)
    """Seconds a deduplication id is remembered if the send says nothing."""
    sasquatch_default_priority: WholeNumber = Field(
        limits.PRIORITY_DEFAULT, ge=limits.PRIORITY_MIN, le=limits.PRIORITY_MAX
    )
    """The priority of a message if the send says nothing."""
    sasquatch_poison_cleanup_interval: Seconds = Field(60, ge=1, le=limits.SASQUATCH_INTERVAL_SECONDS_MAX)
    """Seconds between two sweeps for failed messages; a sweep rarely finds one, because they are handled at once.

    The three cleanup intervals shorten those of the sweeps of both dialects: this one those for failed messages, the
    other two those for expired ones. Messages fail, expire and become visible at their exact time, without a sweep.
    """
    sasquatch_retention_cleanup_interval: Seconds = Field(600, ge=1, le=limits.SASQUATCH_INTERVAL_SECONDS_MAX)
    """Seconds between two sweeps for expired messages; a sweep rarely finds one, because they expire on time."""
    sasquatch_dedup_cleanup_interval: Seconds = Field(60, ge=1, le=limits.SASQUATCH_INTERVAL_SECONDS_MAX)
    """Seconds between two sweeps for expired deduplication ids."""


class SqsSection(Section):
    sqs_enabled: Boolean = True
    """Serve the operations of Amazon SQS at the root of the API's address."""
    sqs_auth: Boolean = True
    """Check signatures; false only where nobody but this machine can reach the API.

    It may be false only if api_addr is an address of this machine alone. Requests from web pages of other sites, and
    for other hosts, are then refused.
    """
    sqs_account: AccountNumber = "000000000000"
    """The account in URLs and ARNs of queues."""
    sqs_region: Region = "us-east-1"
    """The region whose queues have no region before their names in the rest of the server."""


class TlsSection(Section):
    tls_cert: ReadableFile | None = Field(None, examples=["/etc/forq/tls_cert.pem"])
    """PEM file with the certificate and its chain; turns TLS on.

    Certificate and key are given both or not at all. They are loaded once at the start.
    """
    tls_key: ReadableFile | None = Field(None, examples=["/etc/forq/tls_key.pem"])
    """PEM file with the certificate's private key, not encrypted."""


class MetricsSection(Section):
    metrics_enabled: Boolean = False
    """Serve GET /metrics for Prometheus."""
    metrics_auth_secret: Secret | None = Field(None, repr=False, examples=[""])
    """What the scraper presents as X-API-Key; needed when metrics are enabled."""


class LogSection(Section):
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that is logged."""
    log_format: Literal["auto", "json", "console"] = "auto"
    """json: one object a line; console: text for people; auto: text on a terminal, else JSON."""


# In the order in which people need them. pydantic takes the fields of the last base first, so it reads from the end.
class Config(
    SqsSection,
    SasquatchSection,
    MetricsSection,
    EventsSection,
    QueueSection,
    LogSection,
    TlsSection,
    UiSection,
    DatabaseSection,
    ServerSection,
    BaseSettings,
):
    """The effective settings of a server, built by `load.load` from sources; its text form shows no secret."""

    # Validators take text, and the default directory of the database need not exist yet: defaults are not validated.
    model_config = SettingsConfigDict(
        frozen=True, hide_input_in_errors=True, validate_default=False, defer_build=False
    )

    def __init__(self, *sources: PydanticBaseSettingsSource) -> None:
        """sources: the first that has a setting wins. Raises pydantic's ValidationError with all invalid values."""
        BaseSettings.__init__(self, _build_sources=(sources, {}))

    @property
    def ui_needs_a_proxy(self) -> bool:
        """Whether nobody can log in from other machines without a proxy with TLS, and none is known of.

        They get the admin UI over plain HTTP, and its cookies are Secure, so that browsers drop them.
        """
        reached = self.ui_enabled and not self.ui_addr.is_loopback
        return reached and self.tls_cert is None and self.env == "pro" and not self.trust_proxy_headers


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """The declaration of one setting."""

    name: str
    section: str
    field: FieldInfo

    @property
    def variable(self) -> str:
        return f"FORQ_{self.name.upper()}"

    @property
    def option(self) -> str | None:
        """The command line option; None for a secret."""
        return None if self.secret else f"--{self.name.replace('_', '-')}"

    @property
    def secret(self) -> bool:
        return not self.field.repr

    @property
    def doc(self) -> str:
        """Its meaning: the first paragraph below the declaration."""
        return self._text[0]

    @property
    def details(self) -> str:
        """What else is to know about it: the other paragraphs."""
        return self._text[2]

    @property
    def _text(self) -> tuple[str, str, str]:
        return (self.field.description or "").partition("\n\n")

    @property
    def form(self) -> Notation:
        """How its value is written: the form of its type, or else its choices or bounds."""
        inner = get_args(self.field.annotation)
        if get_origin(self.field.annotation) is Literal:
            return Notation("|".join(inner), f"{', '.join(inner[:-1])} or {inner[-1]}")
        # The form of a type that may also be None is one level deeper.
        said = [*self.field.metadata, *(each for part in inner for each in getattr(part, "__metadata__", ()))]
        for each in said:
            if isinstance(each, Notation):
                return each
        bound = {name: getattr(each, name) for each in said for name in ("ge", "le") if hasattr(each, name)}
        return Notation("NUMBER", f"a whole number from {bound['ge']} to {bound['le']}")

    @property
    def default(self) -> Any:
        """The default; None for a setting that is off or required."""
        return None if self.field.is_required() else self.field.get_default(call_default_factory=True)

    @property
    def default_text(self) -> str:
        if isinstance(self.field.json_schema_extra, dict):
            return str(self.field.json_schema_extra["default"])
        if self.field.is_required():
            return "(required)"
        if self.default is None:
            return "(none)"
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    @property
    def default_words(self) -> str:
        """The default with its unit."""
        units = [each.name for each in self.field.metadata if isinstance(each, Unit)]
        return " ".join([self.default_text, *units])

    @property
    def example(self) -> Any:
        """A value that shows the form: the declared example, else the default."""
        return self.field.examples[0] if self.field.examples else self.default


SETTINGS: Mapping[str, ServerSetting] = MappingProxyType(
    {
        name: ServerSetting(name, section.__name__.removesuffix("Section").lower(), field)
        for section in reversed(Config.__bases__)
        if issubclass(section, Section)
        for name, field in section.model_fields.items()
    }
)
