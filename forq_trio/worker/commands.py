"""A handler that runs a command for each message: `app.on("emails")(exec_handler("./send-email"))`.

The content is the command's stdin. Its exit code decides: 0 acknowledges, 75 (EX_TEMPFAIL of sysexits.h) asks for
another attempt, any other one is a failure whose reason is the end of stderr. A command may leave stdin unread and may
write without end: only the last bytes of stderr stay in memory, and stdout is thrown away.

A command is the leader of a process group. When the handler is cancelled the whole group gets SIGTERM, and after
`kill_seconds` SIGKILL.
"""

import os
import re
import signal
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from forq_trio.model import limits
from forq_trio.worker.jobs import Job, told_attributes
from forq_trio.worker.outcomes import Retry

TEMPORARY_FAILURE = 75
STDERR_TAIL_BYTES = 4_096
ENVIRONMENT_BYTES_MAX = 64 * 1_024
KILL_SECONDS = 5.0
_STDERR_END_SECONDS = 1.0
_GROUP_LOOK_SECONDS = 0.02
_REASON_LENGTH = limits.REASON_LENGTH_MAX - 100  # the type and the exit code stand in front

Handler = Callable[[str, Job], Awaitable[None]]


class CommandFailed(Exception):
    """A command ended with an exit code that says that it failed"""


def exec_handler(command: str | Sequence[str], *, kill_seconds: float = KILL_SECONDS) -> Handler:
    """A handler that runs `command` for each message.

    command: a line for /bin/sh, or a program and its arguments. kill_seconds: how long its processes have
    after SIGTERM. The handler raises CommandFailed, `Retry` for exit code 75, OSError for a program that cannot be run.
    Cancelled: it ends all processes of the command's group first.
    """
    arguments = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    if not arguments or not arguments[-1]:
        raise ValueError("the command is empty")

    async def run_command(content: str, job: Job) -> None:
        code, tail = await _run(arguments, content.encode(), environment_of(job), kill_seconds)
        if code == TEMPORARY_FAILURE:
            raise Retry(reason=_reason(code, tail))
        if code:
            raise CommandFailed(_reason(code, tail))

    return run_command


def environment_of(job: Job) -> dict[str, str]:
    """The environment variables that tell a command about its message.

    An attribute's name is in upper case, with _ for each character that is not an ASCII letter or digit. If two get the
    same name, the first counts. Attributes beyond ENVIRONMENT_BYTES_MAX are left out and counted in
    FORQ_ATTRIBUTES_LEFT_OUT.
    """
    told = {
        "FORQ_MESSAGE_ID": job.id,
        "FORQ_QUEUE": job.queue,
        "FORQ_ATTEMPT": str(job.attempt),
        "FORQ_LAST_ATTEMPT": "1" if job.last_attempt else "0",
    }
    attributes, left_out = told_attributes(job, _variable, ENVIRONMENT_BYTES_MAX)
    if left_out:
        told["FORQ_ATTRIBUTES_LEFT_OUT"] = str(left_out)
    return told | attributes


def _variable(name: str, value: str) -> tuple[str, str]:
    text = value.replace("\0", "").encode(errors="replace").decode()
    return f"FORQ_ATTRIBUTE_{re.sub('[^A-Z0-9]', '_', name.upper())}", text


class _Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._bytes = b""

    async def read(self, stream: ByteReceiveStream) -> None:
        """Read the stream to its end."""
        with suppress(anyio.BrokenResourceError):
            async for chunk in stream:
                self._bytes = (self._bytes + chunk)[-STDERR_TAIL_BYTES:]

    def text(self) -> str:
        """The bytes as text, without the rest of a character that was cut."""
        text = self._bytes.decode(errors="replace").replace("\0", "").strip()
        return text.lstrip("\N{REPLACEMENT CHARACTER}") if len(self._bytes) == STDERR_TAIL_BYTES else text


async def _run(
    arguments: Sequence[str], stdin: bytes, told: dict[str, str], kill_seconds: float
) -> tuple[int, str]:
    """Run a program; returns its exit code, which is below 0 for a signal, and the tail of its stderr."""
    tail = _Tail()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FORQ_ATTRIBUTE")}
    process = await anyio.open_process(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=inherited | told,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    read = anyio.Event()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_write, process.stdin, stdin)
            tasks.start_soon(_read, tail, process.stderr, read)
            code = await process.wait()
            with anyio.move_on_after(_STDERR_END_SECONDS):  # a child of the command may have it open for ever
                await read.wait()
            tasks.cancel_scope.cancel()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end_group(process, kill_seconds)
        raise
    finally:
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return code, tail.text()


async def _write(stream: ByteSendStream, data: bytes) -> None:
    """Write all, unless the command stops reading."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if data:
            await stream.send(data)
        await stream.aclose()


async def _read(tail: _Tail, stream: ByteReceiveStream, read: anyio.Event) -> None:
    await tail.read(stream)
    read.set()


async def _end_group(process: Process, kill_seconds: float) -> None:
    """End all processes of the command's group: SIGTERM, then SIGKILL for those that are left."""
    if not _signal_group(process.pid, signal.SIGTERM):
        return
    with anyio.move_on_after(kill_seconds):
        await process.wait()
        # Not all processes of the group are our children, so nothing tells us when they end.
        while _signal_group(process.pid, 0):  # noqa: ASYNC110
            await anyio.sleep(_GROUP_LOOK_SECONDS)
        return
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; False if it no longer exists."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # the processes that are left run as another user
        return number != 0
    return True


def _reason(code: int, tail: str) -> str:
    words = f"exit {code}" if code >= 0 else f"ended by {signal_name(-code)}"
    return f"{words}: {tail[-_REASON_LENGTH:]}" if tail else words


def signal_name(number: int) -> str:
    """The name of a signal, SIGKILL for example."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
