"""Structured logs with one closed list of events: JSON lines on stderr, or text for people on a terminal.

No content of a message and no secret is ever written: a field with such a name is masked, and tracebacks are written
without local variables. A log line that cannot be written is dropped: a full disk or a closed pipe behind stderr must
not stop the queue.

Unless `configure` was called (the queue is embedded in an application), events go to the standard library's logger
"forq_trio", for the application to handle.
"""

import logging
import sys
from collections.abc import MutableMapping
from enum import StrEnum
from typing import Any, Literal, Self, TextIO

import structlog

from forq_trio.model import limits
from forq_trio.telemetry.styles import is_styled

MASKED_WORDS = frozenset({"content", "secret", "key", "authorization"})
MASK = "********"

LogValue = str | int | float | bool | None
LevelName = Literal["debug", "info", "warning", "error"]


class LogEvent(StrEnum):
    """Everything the server ever logs: name, level, meaning."""

    level: LevelName
    doc: str

    def __new__(cls, value: str, level: LevelName, doc: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.level = level
        member.doc = doc
        return member

    SERVER_STARTED = "server.started", "info", "The server accepts connections."
    SERVER_STOPPING = (
        "server.stopping",
        "info",
        "A signal stops the server: no new connections, running requests finish.",
    )
    SERVER_STOPPED = (
        "server.stopped",
        "info",
        "All calls are answered, all changes committed, all files closed.",
    )
    SHUTDOWN_FORCED = (
        "shutdown.forced",
        "warning",
        "Requests still ran when the time to stop was over; they were cut off.",
    )
    DATABASE_MIGRATED = (
        "database.migrated",
        "info",
        "A database made by Forq was migrated; a copy of the original is next to it.",
    )
    OTHER_SECRET = (
        "server.other_secret",
        "warning",
        "Another server on the database has another FORQ_AUTH_SECRET: keys and logins are good at one of them only.",
    )
    STORAGE_ERROR = "storage.error", "error", "The database refused an operation; nothing was changed."
    DISK_FULL = "disk.full", "warning", "The disk is full, or nearly so: sends are refused, the rest goes on."
    LOG_GAVE_WAY = (
        "disk.log_gave_way",
        "warning",
        "The disk is full: the oldest finished messages, or lifecycle events, are removed, so that sends go on.",
    )
    DISK_ROOM = "disk.room", "info", "The disk has free space again: sends are accepted."
    FILES_LOST = (
        "files.lost",
        "error",
        "A file of the database was removed, moved, replaced or linked: sends, settings and moves are refused.",
    )
    FILES_BACK = (
        "files.back",
        "info",
        "The files of the database are back in their places: sends are accepted.",
    )
    COMMIT_FAILED = (
        "writer.commit_failed",
        "error",
        "A commit failed, its outcome is unknown; the process ends.",
    )
    WRITER_OVERLOADED = "writer.overloaded", "warning", "The inbox stayed full and calls were refused."
    MESSAGE_SET_ASIDE = (
        "message.set_aside",
        "error",
        "A damaged message could not be settled or handed out; it stays as it is and is tried again later.",
    )
    DEAD_LETTERS_LOST = (
        "dead_letters.lost",
        "warning",
        "Failed messages were deleted, because their dead-letter queue was full.",
    )
    CHECKPOINT_HELD = (
        "checkpoint.held",
        "warning",
        "The write-ahead log grows, because a long read blocks checkpoints.",
    )
    CHECKPOINT_FAILED = "checkpoint.failed", "warning", "A checkpoint failed; it is tried again."
    SNAPSHOT_HELD = (
        "database.snapshot_held",
        "warning",
        "Something in the database keeps a snapshot for a minute or longer: vacuum cannot remove dead rows.",
    )
    SNAPSHOT_ENDED = "database.snapshot_ended", "info", "No snapshot in the database is that old any more."
    JOB_FAILED = "job.failed", "error", "A periodic job raised an error; it will be restarted."
    JOB_RESTARTED = "job.restarted", "info", "A periodic job runs again after a failure."
    BACKUP_MADE = "backup.made", "info", "A backup was made, checked and written to the disk."
    BACKUP_FAILED = "backup.failed", "error", "A backup failed; no file of it is left."
    COMPACTED = "compaction.ended", "info", "Free pages of the file were given back to the disk."
    COMPACTION_FAILED = (
        "compaction.failed",
        "warning",
        "A compaction failed; what it has freed stays freed.",
    )
    UI_PLAIN = (
        "ui.plain_http",
        "warning",
        "The admin UI is served over plain HTTP to other machines, and its cookies are for TLS alone (FORQ_ENV=pro)."
        " Behind a proxy with TLS that is right (FORQ_TRUST_PROXY_HEADERS); otherwise nobody can log in from there.",
    )
    UI_REQUEST_FAILED = (
        "ui.request_failed",
        "error",
        "A page of the admin UI could not be made; the reference is on the error page.",
    )
    UI_CONNECTION_FAILED = (
        "ui.connection_failed",
        "error",
        "A connection of the admin UI ended by an unexpected error; the others go on.",
    )
    UI_VIEW_FAILED = (
        "ui.view_failed",
        "warning",
        "A live page could not be updated, because the database did not answer; it is tried again.",
    )
    REDRIVE_FAILED = (
        "redrive.failed",
        "error",
        "A redrive of dead letters failed; messages that it had not moved stay.",
    )
    REQUEST_ANSWERED = "request.answered", "debug", "A request of any dialect was answered."
    REQUEST_FAILED = "request.failed", "error", "A request was answered 500, because of an unexpected error."
    AUTH_THROTTLED = (
        "auth.throttled",
        "warning",
        "A client showed too many wrong keys and is locked out for a while.",
    )
    LIBRARY_MESSAGE = "library.message", "warning", "A library we use logged a warning or an error."


EventDict = MutableMapping[str, Any]


def _protect(_: Any, __: str, event: EventDict) -> EventDict:
    """Mask secrets and contents, bound the length of other texts, and put time, level and event first."""
    event = {name: event.pop(name) for name in ("timestamp", "level", "event") if name in event} | dict(event)
    for name, value in event.items():
        if name.lower().replace("-", "_").rpartition("_")[2] in MASKED_WORDS:
            event[name] = MASK
        elif isinstance(value, str) and len(value) > limits.LOG_FIELD_LENGTH_MAX:
            event[name] = value[: limits.LOG_FIELD_LENGTH_MAX] + "…"
    return event


class _SafeWriter:
    """Writes whole lines to a stream, and drops those that it cannot write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass

    debug = info = warning = error = write


class _LibraryHandler(logging.Handler):
    """Passes on the records that libraries log through the standard library."""

    def emit(self, record: logging.LogRecord) -> None:
        exception = record.exc_info[1] if record.exc_info else None
        log(LogEvent.LIBRARY_MESSAGE, exception=exception, logger=record.name, text=record.getMessage())


def _make_logger(level: LevelName, renderer: Any, writer: Any) -> Any:
    return structlog.wrap_logger(
        writer,
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _protect,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )


def _embedded_logger() -> Any:
    renderer = structlog.processors.KeyValueRenderer(key_order=["event"])
    return structlog.wrap_logger(
        logging.getLogger("forq_trio"),
        processors=[_protect, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


_logger: Any = _embedded_logger()


def configure(
    level: LevelName, output: Literal["auto", "json", "console"], stream: TextIO | None = None
) -> None:
    """Write events of at least `level` to `stream` (None: stderr) from now on; for the server process only.

    output: FORQ_LOG_FORMAT. Warnings of libraries are written too, as `library.message`.
    """
    global _logger
    stream = sys.stderr if stream is None else stream
    renderer: Any
    if output == "json" or (output == "auto" and not stream.isatty()):
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=is_styled(stream), exception_formatter=structlog.dev.plain_traceback, sort_keys=False
        )
    _logger = _make_logger(level, renderer, _SafeWriter(stream))
    logging.basicConfig(handlers=[_LibraryHandler(logging.WARNING)], level=logging.WARNING, force=True)


def log(event: LogEvent, *, exception: BaseException | None = None, **fields: LogValue) -> None:
    """Write one event at its own level. Never raises, never waits for anything but the stream.

    exception: also write its traceback. fields: details of this occurrence, such as ids and numbers; no
    message contents.
    """
    if exception is None:
        getattr(_logger, event.level)(event.value, **fields)
    else:
        getattr(_logger, event.level)(event.value, exc_info=exception, **fields)
