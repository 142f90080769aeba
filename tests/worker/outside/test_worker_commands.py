"""Handlers that run commands: exit codes, what a command is told, bounds, and the end of all its processes."""

import os
import sys
from pathlib import Path

import pytest
import trio

from forq_trio.model import limits
from forq_trio.worker import commands
from forq_trio.worker.commands import CommandFailed, environment_of, exec_handler
from forq_trio.worker.outcomes import Retry, reason_of

from .fake_jobs import job_of


async def test_exit_0_returns_and_the_command_has_content_and_attributes(tmp_path: Path):
    file = tmp_path / "told"
    told = "$FORQ_MESSAGE_ID $FORQ_QUEUE $FORQ_ATTEMPT $FORQ_LAST_ATTEMPT $FORQ_ATTRIBUTE_REPLY_TO"
    handler = exec_handler(f'(cat; echo "|{told}") > {file}')
    job = job_of("grüße", **{"reply-to": "a b; rm -rf $HOME"})
    await handler(job.content, job)
    assert file.read_text() == f"grüße|{job.id} emails 2 0 a b; rm -rf $HOME\n"


async def test_a_program_has_its_arguments_as_they_are(tmp_path: Path):
    file = tmp_path / "told"
    program = f"import sys; open({str(file)!r}, 'w').write(sys.argv[1])"
    await exec_handler([sys.executable, "-S", "-c", program, "$HOME;"])("", job_of())
    assert file.read_text() == "$HOME;"


async def test_exit_75_is_a_retry_with_the_end_of_stderr():
    with pytest.raises(Retry) as caught:
        await exec_handler("echo busy >&2; exit 75")("", job_of())
    assert (caught.value.delay, caught.value.reason) == (None, "exit 75: busy")


@pytest.mark.parametrize(
    ("command", "words"),
    [("exit 3", "exit 3"), ("echo no >&2; exit 1", "exit 1: no"), ("kill -9 $$", "ended by SIGKILL")],
)
async def test_another_end_is_a_failure(command: str, words: str):
    with pytest.raises(CommandFailed) as caught:
        await exec_handler(command)("", job_of())
    assert str(caught.value) == words


async def test_a_reason_is_the_bounded_end_of_stderr_in_whole_characters():
    """Each character is two bytes, and the bytes that stay in memory begin within one."""
    program = "import sys; sys.stderr.buffer.write('é'.encode() * 100_000 + b'END\\0'); sys.exit(1)"
    with pytest.raises(CommandFailed) as caught:
        await exec_handler([sys.executable, "-S", "-c", program])("", job_of())
    reason = reason_of(caught.value)
    assert reason.startswith("CommandFailed: exit 1: éé")
    assert reason.endswith("éEND")
    assert len(reason) <= limits.REASON_LENGTH_MAX
    assert "\ufffd" not in reason


async def test_a_command_that_reads_nothing_does_not_hang():
    await exec_handler("exit 0")("x" * 1_000_000, job_of())


async def test_a_command_that_leaves_stderr_open_to_another_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commands, "_STDERR_END_SECONDS", 0.01)
    file = tmp_path / "pid"
    with pytest.raises(CommandFailed):
        await exec_handler(f"sleep 100 & echo $! > {file}; exit 4")("", job_of())
    os.kill(int(file.read_text()), 9)


@pytest.mark.parametrize("ignores", ["", "trap '' TERM; "])
async def test_cancelled_it_ends_all_processes_of_the_group(tmp_path: Path, ignores: str):
    """One that writes without end, too. All hold a pipe open, which ends with the last of them."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    loops = "(while :; do echo x >&2; done) & echo begun >&3; while :; do sleep 100; done"
    command = f"{ignores}exec 3> {path}; {loops}"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exec_handler(command, kill_seconds=0.05), "", job_of())
        pipe = await trio.to_thread.run_sync(path.open)
        assert await trio.to_thread.run_sync(pipe.readline) == "begun\n"
        nursery.cancel_scope.cancel()
    with pipe:
        assert await trio.to_thread.run_sync(pipe.read) == ""


async def test_attributes_are_bounded_and_a_name_counts_once():
    job = job_of(**{"a-b": "1", "a_b": "2", "big": "x" * commands.ENVIRONMENT_BYTES_MAX, "ü": "\0z"})
    told = environment_of(job)
    assert told["FORQ_ATTRIBUTE_A_B"] == "1"
    assert told["FORQ_ATTRIBUTE__"] == "z"
    assert told["FORQ_ATTRIBUTES_LEFT_OUT"] == "2"
    assert "FORQ_ATTRIBUTE_BIG" not in told


def test_an_empty_command_is_refused():
    with pytest.raises(ValueError, match="empty"):
        exec_handler("")
