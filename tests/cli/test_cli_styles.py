"""Bold, dim and colours: only where the terminal has them and nobody has turned them off."""

import io
import re
from pathlib import Path

import pytest

from forq_trio import ForqClient
from forq_trio.telemetry.log import LogEvent, configure, log

from .conftest import Forq, Stream

SOURCE = Path(__file__).parents[2] / "forq_trio"
STYLE = re.compile(r"\x1b\[[0-9;]+m")
PLACES = {
    r"NO_COLOR|FORCE_COLOR": ["telemetry/styles.py"],
    r"\bclick\.(style|secho)\(": ["cli/output.py"],
    r"\bConsole\(": ["cli/progress.py"],
}
"""Where each of these may be: whoever styles anything asks one function."""


@pytest.fixture(
    params=[
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"CLICOLOR": "1"}, True),
        ({"FORCE_COLOR": "0", "TERM": "dumb"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"CLICOLOR_FORCE": "1", "CLICOLOR": "0"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
    ids=lambda param: " ".join(f"{name}={value}" for name, value in param[0].items()) or "nothing",
)
def styled(request: pytest.FixtureRequest, forq: Forq, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a terminal has styles where these variables are set."""
    variables, wanted = request.param
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return wanted


def test_tables_and_messages(connected: Forq, client: ForqClient, queue: str, styled: bool):
    client.produce(queue, "x")
    for arguments in (("queues",), ("receive", queue)):
        assert bool(STYLE.search(connected(*arguments, terminal=True).out)) is styled


def test_a_pipe_has_none_even_where_they_are_forced(
    connected: Forq, queue: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    connected("send", queue, "x")
    assert "\x1b" not in connected("queues").out


def test_progress(forq: Forq, styled: bool, monkeypatch: pytest.MonkeyPatch):
    from forq_trio.cli.progress import progress_bar

    stream = Stream(terminal=True)
    monkeypatch.setattr("sys.stderr", stream)
    with progress_bar("copying", 2) as show:
        show(1)
    # On a dumb terminal rich moves no cursor, and shows nothing that it would have to remove.
    assert not STYLE.search(stream.text()) or styled


def test_the_bar_has_styles_where_they_are_not_turned_off(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    from forq_trio.cli.progress import progress_bar

    for variables, wanted in (({}, True), ({"NO_COLOR": "1"}, False)):
        stream = Stream(terminal=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr", stream)
            for name, value in variables.items():
                patch.setenv(name, value)
            with progress_bar("copying", 2) as show:
                show(1)
        assert "copying" in stream.text()
        assert bool(STYLE.search(stream.text())) is wanted


@pytest.mark.usefixtures("logging_as_before")
def test_logs(styled: bool):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    configure("info", "auto", stream)
    log(LogEvent.SERVER_STOPPED)
    assert "server.stopped" in stream.getvalue()
    assert bool(STYLE.search(stream.getvalue())) is styled


@pytest.mark.parametrize("pattern", PLACES)
def test_one_place_decides(pattern: str):
    found = [
        str(path.relative_to(SOURCE))
        for path in sorted(SOURCE.rglob("*.py"))
        if re.search(pattern, path.read_text(encoding="utf-8"))
    ]
    assert found == PLACES[pattern]
