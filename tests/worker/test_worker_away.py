"""Workers whose server is away, and what a program prints when its worker cannot begin."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import trio

from forq_trio import open_broker
from forq_trio.model.errors import ForqUnreachable, WrongKey
from forq_trio.worker import Worker
from support.actors import all_idle
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment

from .test_worker_trouble import Failing

ROOT = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:1"


async def nothing(content: str) -> None:
    """A handler."""


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "forq_trio.worker"]


async def test_that_a_source_does_not_answer_is_told_of_once(face, nursery, caplog) -> None:
    source = Failing(face.methods, settings=[ForqUnreachable("gone", sent=False) for _ in range(8)])
    app = Worker(source)
    app.on("q")(nothing)
    nursery.start_soon(app.serve)
    while source._failures["settings"]:
        await all_idle()
        await face.advance(1_000)
    assert told(caplog) == ["q: its settings could not be read, trying again: gone"]
    app.stop()


async def test_that_a_source_answers_again_is_told_of_soon(face, nursery, caplog) -> None:
    """Nothing was said; and the claim that was repeated waited for a message, for up to 30 seconds."""
    source = Failing(face.methods, receive=[ForqUnreachable("gone", sent=True) for _ in range(2)])
    app = Worker(source)
    app.on("q")(nothing)
    nursery.start_soon(app.serve)
    for _ in range(3):
        await all_idle()
        await face.advance(200)
    assert told(caplog)[0] == "q: messages could not be received, trying again: gone"
    assert [re.sub(r"\d\.\d s", "0.3 s", line) for line in told(caplog)[1:]] == [
        "q: messages could not be received for 0.3 s; now it works"
    ]
    app.stop()


async def test_a_worker_that_waits_for_its_source_ends_at_once(face) -> None:
    """It slept on, for up to five seconds."""
    source = Failing(face.methods, settings=[ForqUnreachable("gone", sent=False) for _ in range(100)])
    app = Worker(source)
    app.on("q")(nothing)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app.serve)
        for _ in range(5):
            await all_idle()
            await face.advance(1_000)
        app.stop()  # and no time passes


class Noting(logging.Handler):
    """Notes when something is logged."""

    def __init__(self, note: Callable[[float], object]) -> None:
        super().__init__()
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        self._note(trio.current_time())


async def test_a_server_that_is_away_is_told_of_within_a_second(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, caplog
) -> None:
    """The worker's client tried for ten seconds before the worker heard of it."""
    monkeypatch.setattr("time.monotonic", trio.current_time)
    app, begun, told_at = Worker(NOWHERE, secret="s"), trio.current_time(), []
    app.on("q")(nothing)
    noting = Noting(told_at.append)
    logging.getLogger("forq_trio.worker").addHandler(noting)
    try:
        with trio.move_on_after(30):
            await app.serve()
    finally:
        logging.getLogger("forq_trio.worker").removeHandler(noting)
    (line,) = told(caplog)
    assert line.startswith(
        f"q: its settings could not be read, trying again: no server can be reached at {NOWHERE} ("
    )
    assert told_at[0] - begun < 1


MAIL = """
import sys
from forq_trio import ForqError
from forq_trio.worker import Worker

app = Worker()

@app.on("emails")
async def send(content: str) -> None: ...

if __name__ == "__main__":
    try:
        app.run()
    except ForqError as error:
        if len(sys.argv) == 1:
            raise
        print(type(error).__name__)
        1 / 0
"""


@pytest.mark.parametrize("secret", ["", pytest.param("wrong", marks=pytest.mark.tier2)])
def test_a_program_without_a_right_secret_ends_with_the_line_of_forq_work(
    tmp_path: Path, secret: str
) -> None:
    (tmp_path / "mail.py").write_text(MAIL, encoding="utf-8")
    with in_process_server() as url:
        variables = {"FORQ_URL": url, "FORQ_AUTH_SECRET": secret, "PYTHONPATH": str(ROOT)}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, *arguments],
                cwd=tmp_path,
                env=environment(**variables),
                capture_output=True,
                text=True,
                timeout=WAIT_SECONDS_MAX,
            )

        program, command, catching = (
            run("mail.py"),
            run("-m", "forq_trio.cli", "work", "mail.py"),
            run("mail.py", "catch"),
        )
    sentence = program.stderr.removesuffix("\n")
    assert (program.returncode, sentence.count("\n"), url in sentence) == (1, 0, True), program.stderr
    assert (command.returncode, command.stderr.startswith(sentence)) == (4, True), command.stderr
    assert catching.stdout == "WrongKey\n"
    assert catching.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "Traceback" in catching.stderr  # of what is no error of the source


async def test_the_error_of_a_worker_inside_of_an_application_is_raised(monkeypatch) -> None:
    monkeypatch.setenv("FORQ_AUTH_SECRET", "wrong")
    with in_process_server() as url:
        app = Worker(url)
        app.on("q")(nothing)
        told = f"says the server at {url}; its client has the key of FORQ_AUTH_SECRET$"
        with trio.fail_after(30), pytest.raises(WrongKey, match=told):
            await app.serve()


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
def test_the_error_of_a_plain_function_has_its_own_frames_alone(backend: str, caplog) -> None:
    """It had those of the libraries that run its thread, too."""

    def handle(content: str) -> None:
        fail()

    def fail() -> None:
        raise ValueError("bad")

    async def main() -> None:
        async with open_broker("memory:") as broker:
            app = Worker(broker)
            app.on("q", retry=[60])(handle)
            await app.send("q", "x")
            await app.drain()

    anyio.run(main, backend=backend)
    (line,) = told(caplog)
    assert [frame.rpartition(" in ")[2] for frame in line.splitlines()[1:]] == ["handle", "fail"]


@pytest.mark.parametrize(
    ("error", "end"), [(ValueError, ", and is the last: ValueError"), (OSError, ": OSError")]
)
async def test_the_log_says_which_attempt_is_the_last(error: type[Exception], end: str, caplog) -> None:
    async with open_broker("memory:") as broker:
        app = Worker(broker)

        @app.on("q", retry=[60], dead=(ValueError,))
        async def handle(content: str) -> None:
            raise error

        await app.send("q", "x")
        await app.drain()
    (line,) = told(caplog)
    assert line.splitlines()[0].endswith(f"failed{end}")
