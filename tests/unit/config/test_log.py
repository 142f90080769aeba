"""Logs: the closed list of events, nothing secret, JSON lines, and never in the way."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from forq_trio.model import limits
from forq_trio.telemetry import log as log_module
from forq_trio.telemetry.log import MASK, LogEvent, configure, log


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = log_module._logger, root.handlers[:], root.level
    yield
    log_module._logger, root.handlers[:] = before[0], before[1]
    root.setLevel(before[2])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_json_line_begins_with_time_level_and_event():
    stream = io.StringIO()
    configure("info", "json", stream)
    log(LogEvent.SERVER_STARTED, api="localhost:8080", workers=2)
    (line,) = lines(stream)
    assert list(line) == ["timestamp", "level", "event", "api", "workers"]
    assert (line["level"], line["event"], line["workers"]) == ("info", "server.started", 2)


def test_each_event_has_its_level_and_those_below_are_left_out():
    stream = io.StringIO()
    configure("warning", "json", stream)
    for event in LogEvent:
        log(event)
    written = [line["event"] for line in lines(stream)]
    assert written == [event.value for event in LogEvent if event.level in ("warning", "error")]


@pytest.mark.parametrize(
    "name", ["content", "secret", "key", "authorization", "auth_secret", "api_key", "X-API-Key"]
)
@pytest.mark.parametrize("output", ["json", "console"])
def test_fields_that_must_not_be_seen_are_masked(name: str, output: str):
    stream = io.StringIO()
    configure("info", output, stream)
    log(LogEvent.AUTH_THROTTLED, client="192.0.2.1", **{name: "hunter2"})
    assert "hunter2" not in stream.getvalue()
    assert MASK in stream.getvalue()
    assert "192.0.2.1" in stream.getvalue()


def test_a_traceback_is_written_without_variables():
    stream = io.StringIO()
    configure("info", "console", stream)

    def fail(content: str) -> None:
        raise ValueError("broken")

    try:
        fail("hunter2-the-content")
    except ValueError as problem:
        log(LogEvent.REQUEST_FAILED, exception=problem, path="/x")
    text = stream.getvalue()
    assert "Traceback" in text
    assert "ValueError: broken" in text
    # The source line of the call is part of the traceback; what the variable held is not.
    assert "content = " not in text


def test_long_fields_are_cut():
    stream = io.StringIO()
    configure("info", "json", stream)
    log(LogEvent.STORAGE_ERROR, error="x" * (limits.LOG_FIELD_LENGTH_MAX + 1))
    assert lines(stream)[0]["error"] == "x" * limits.LOG_FIELD_LENGTH_MAX + "…"


def test_auto_is_text_on_a_terminal_and_json_elsewhere():
    pipe, terminal = io.StringIO(), Terminal()
    configure("info", "auto", pipe)
    log(LogEvent.SERVER_STOPPED)
    configure("info", "auto", terminal)
    log(LogEvent.SERVER_STOPPED)
    assert lines(pipe)[0]["event"] == "server.stopped"
    assert "server.stopped" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")


def test_a_stream_that_cannot_be_written_to_is_no_reason_to_fail():
    configure("info", "json", Broken())
    log(LogEvent.SERVER_STARTED)
    closed = io.StringIO()
    configure("info", "json", closed)
    closed.close()
    log(LogEvent.SERVER_STARTED)


def test_warnings_of_libraries_are_passed_on():
    stream = io.StringIO()
    configure("info", "json", stream)
    logging.getLogger("some.package").warning("found %d", 3)
    logging.getLogger("some.package").info("not this")
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["text"]) == ("library.message", "some.package", "found 3")


def test_embedded_in_an_application_events_go_to_its_logging(caplog: pytest.LogCaptureFixture):
    log(LogEvent.AUTH_THROTTLED, client="192.0.2.1", key="hunter2")
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("forq_trio", "WARNING")
    assert record.getMessage() == f"event='auth.throttled' client='192.0.2.1' key='{MASK}'"
