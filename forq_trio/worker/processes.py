"""Processes for a handler with `pool="process"`, which keeps a processor busy.

A pool belongs to one handler while its worker serves. It has at most as many processes as the handler's concurrency;
one is started when a call finds none idle, and then used again. A process imports the handler by its name, for as long
as that takes. They are spawned, not forked: a fork would copy the locks of this process's threads.

A thread waits for each answer. When the call is cancelled the process is killed, with those that it has started, and
the thread ends because the other end of its pipe is closed. A process that still imports is left to the next call.
"""

import logging
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from forq_trio.model.extras import check_system
from forq_trio.worker.commands import signal_name
from forq_trio.worker.handlers import Handler
from forq_trio.worker.outcomes import FRAMES
from forq_trio.worker.process_main import PROCESS_NAME, WORKERS_SIGNALS, serve_calls
from forq_trio.worker.program_end import ProgramEnds

if TYPE_CHECKING:
    from forq_trio.worker.jobs import Run

logger = logging.getLogger("forq_trio.worker")

LOOK_SECONDS = 1.0
"""How often a thread looks whether its process is alive. A process that the handler started may hold the pipe open."""
TELL_SECONDS = 10.0
"""When the log says that an import goes on."""


class ProcessLost(Exception):
    """The process of a handler ended before it answered"""

    _forq_frames = ""  # no line of the program raised it


class HandlerProcess:
    """One process of a pool, which makes one call at a time. Its methods block."""

    def __init__(self, handler: Handler[Any, ..., Any]) -> None:
        """Start it. Its first answer is for `refusal`."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        # Of who reads the pipe, as the thread of a cancelled call may still do, and of who closes it: its number may be
        # that of another file then.
        self._using = threading.RLock()
        self._first_answer: bytes | None = None
        end, self._life = context.Pipe(duplex=False)  # the process lives as long as somebody has the second
        function = handler.function
        self._process = context.Process(
            target=serve_calls,
            args=(theirs, end, function.__module__, function.__qualname__),
            name=f"{PROCESS_NAME} {handler.name}",
        )
        before = signal.pthread_sigmask(signal.SIG_BLOCK, WORKERS_SIGNALS)  # it begins with them blocked, too
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
            end.close()

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    @property
    def was_killed(self) -> bool:
        """Whether a signal has ended it."""
        return (self._process.exitcode or 0) < 0

    def refusal(self, tell: Callable[[], object]) -> str | None:
        """Why it cannot import the handler; None if it has done so. Raises ProcessLost.

        tell: called if that takes long.
        """
        with self._using:
            if self._first_answer is None:
                with suppress(OSError):  # it has ended, as `_receive` will see
                    if not self._pipe.poll(TELL_SECONDS):
                        tell()
                self._first_answer = self._receive()
        refusal: str | None = pickle.loads(self._first_answer)
        return refusal

    def ask(self, given: bytes) -> bytes:
        """The answer to a call. Raises ProcessLost."""
        with suppress(OSError):  # it has ended, as `_receive` will see
            self._pipe.send_bytes(given)
        return self._receive()

    def _receive(self) -> bytes:
        """The next answer. Raises ProcessLost, with the signal or the exit code."""
        with self._using:
            try:
                while not self._pipe.poll(LOOK_SECONDS):
                    if not self.is_alive:
                        break
                else:
                    return self._pipe.recv_bytes()
            except (EOFError, OSError):
                pass
            self._process.join(LOOK_SECONDS)
            self.close()  # it may have closed the pipe, and live
        code = self._process.exitcode or 0
        ended = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        raise ProcessLost(f"the handler's process {ended}")

    def kill(self) -> None:
        """End it, and the processes that it has started."""
        number = self._process.pid
        if number and self.is_alive:
            with suppress(ProcessLookupError, PermissionError):  # it has no group of its own yet
                os.killpg(number, signal.SIGKILL)
            self._process.kill()

    def close(self) -> None:
        """End it, and wait for that."""
        self.kill()
        with self._using:
            self._process.join()
            self._pipe.close()
            self._life.close()


class ProcessPool:
    """The processes of one handler. lazy: whether only calls start them."""

    def __init__(self, handler: Handler[Any, ..., Any], *, lazy: bool) -> None:
        """Raises SystemUnsupported on Windows."""
        check_system('A handler with `pool="process"`')
        self._handler = handler
        self._lazy = lazy
        self._all: set[HandlerProcess] = set()
        self._idle: list[HandlerProcess] = []
        self._starting: list[HandlerProcess] = []  # of calls that were cancelled
        self._has_imported = False  # whether a process ever has
        self._told = False  # whether the log says that an import goes on
        self._threads = anyio.CapacityLimiter(handler.options.concurrency)

    async def prepare(self) -> None:
        """Wait until a process has imported the handler, unless calls start them. Raises ProgramEnds if none can."""
        if not self._lazy:
            self._idle.append(await self._start())

    async def call(self, arguments: list[Any], run: "Run") -> object:
        """What the handler returned. Raises what it raised, ProcessLost, and the error of what cannot be pickled.

        The handler's `timeout` begins when its process has imported it; ProgramEnds is raised if that is not possible.
        Cancelled, it kills the process that it has asked.
        """
        given = pickle.dumps(arguments)
        if (process := self._take(self._idle)) is None:
            run.stop_timeout()
            process = await self._start()
            run.start_timeout()
        answer = await self._answer(process, given)
        self._idle.append(process)
        result, error, frames = pickle.loads(answer)
        if error is None:
            return result
        setattr(error, FRAMES, frames)
        raise error

    def close(self) -> None:
        """End all processes."""
        for process in self._all:
            process.kill()
        for process in self._all:
            process.close()

    async def _start(self) -> HandlerProcess:
        """A new process that has imported the handler.

        Raises ProgramEnds if it cannot, and ProcessLost if it was killed meanwhile, though others could. Cancelled, it
        goes on, for the next call: to import the program may take longer than the calls have, each time anew.
        """
        if (process := self._take(self._starting)) is None:
            process = await anyio.to_thread.run_sync(HandlerProcess, self._handler, limiter=self._threads)
            self._all.add(process)
        try:
            refusal = await anyio.to_thread.run_sync(
                process.refusal, self._tell, abandon_on_cancel=True, limiter=self._threads
            )
        except anyio.get_cancelled_exc_class():
            self._starting.append(process)
            raise
        except ProcessLost as lost:
            self._all.discard(process)
            told = f"{lost} while it imported the program"
            if self._has_imported and process.was_killed:  # for want of memory, for example
                raise ProcessLost(told) from None
            refusal = f"{told}; see what it wrote"
        if refusal is not None:
            raise ProgramEnds(self._handler.refuse(refusal))
        self._has_imported = True
        return process

    def _take(self, processes: list[HandlerProcess]) -> HandlerProcess | None:
        """One that is alive."""
        while processes:
            process = processes.pop()
            if process.is_alive:
                return process
            self._all.discard(process)
        return None

    def _tell(self) -> None:
        """Say once that an import takes long. In a thread."""
        if not self._told:
            self._told = True
            logger.warning(
                "%s: its process still imports the program after %g s", self._handler.queue, TELL_SECONDS
            )

    async def _answer(self, process: HandlerProcess, given: bytes) -> bytes:
        """The answer of a process; it is killed if it does not come to that."""
        try:
            return await anyio.to_thread.run_sync(
                process.ask, given, abandon_on_cancel=True, limiter=self._threads
            )
        except BaseException:
            self._all.discard(process)
            process.kill()
            raise
