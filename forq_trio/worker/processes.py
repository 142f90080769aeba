"""Processes for a handler with `pool="process"`, which keeps a processor busy.

A pool belongs to one handler while its worker serves. It has at most as many processes as the handler's concurrency;
one is started when a call finds none idle, and then used again. A process imports the handler by its name. They are
spawned, not forked: a fork would copy the locks of this process's threads.

A thread waits for each answer. When the call is cancelled the process is killed, with those that it has started, and
the thread ends because the other end of its pipe is closed.
"""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from forq_trio.model.extras import check_system
from forq_trio.worker.commands import signal_name
from forq_trio.worker.handlers import Handler
from forq_trio.worker.outcomes import FRAMES
from forq_trio.worker.process_main import PROCESS_NAME, WORKERS_SIGNALS, serve_calls

LOOK_SECONDS = 1.0
"""How often a thread looks whether its process is alive. A process that the handler started may hold the pipe open."""
START_SECONDS_MAX = 30.0

R = TypeVar("R")


class ProcessLost(Exception):
    """The process of a handler ended before it answered"""

    _forq_frames = ""  # no line of the program raised it


class HandlerProcess:
    """One process of a pool, which makes one call at a time. Its methods block."""

    def __init__(self, handler: Handler[Any, ..., Any]) -> None:
        """Start it."""
        self._imported: bytes | None = None  # its first answer
        self._importing = threading.Lock()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
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

    def ask(self, given: bytes) -> bytes:
        """The answer to a call. Raises ProcessLost."""
        with suppress(OSError):  # it has ended, as `receive` will see
            self._pipe.send_bytes(given)
        return self.receive()

    def imported(self) -> str | None:
        """None if it could import the handler, else why not. Raises ProcessLost.

        Another thread may still wait for the same answer, for a call that was cancelled.
        """
        with self._importing:
            if self._imported is None:
                self._imported = self.receive()
            refusal: str | None = pickle.loads(self._imported)
            return refusal

    def receive(self) -> bytes:
        """The next answer. Raises ProcessLost, with the signal or the exit code."""
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
        self._process.join()
        self._pipe.close()
        self._life.close()


class ProcessPool:
    """The processes of one handler."""

    def __init__(self, handler: Handler[Any, ..., Any]) -> None:
        """Raises SystemUnsupported on Windows."""
        check_system('A handler with `pool="process"`')
        self._handler = handler
        self._all: set[HandlerProcess] = set()
        self._idle: list[HandlerProcess] = []
        # those that import the program, for calls that were cancelled; and until when they may
        self._starting: list[tuple[HandlerProcess, float]] = []
        self._threads = anyio.CapacityLimiter(handler.options.concurrency)

    async def start(self) -> None:
        """Start one process. Raises WorkerSetupError if it cannot import the handler.

        Cancelled, it leaves the process to the next call: to import the program may take longer than a handler's
        `timeout`, each time anew.
        """
        process, until = self._starting.pop() if self._starting else await self._begin()
        refusal: str | None = f"its process has not imported the program within {START_SECONDS_MAX:g} s"
        try:
            with anyio.CancelScope(deadline=until):
                refusal = await anyio.to_thread.run_sync(
                    process.imported, abandon_on_cancel=True, limiter=self._threads
                )
        except ProcessLost as lost:
            refusal = f"{lost} while it imported the program; see what it wrote"
        except anyio.get_cancelled_exc_class():
            self._starting.append((process, until))
            raise
        if refusal is not None:
            self._all.discard(process)
            process.kill()
            raise self._handler.refuse(refusal)
        self._idle.append(process)

    async def call(self, arguments: list[Any]) -> object:
        """What the handler returned. Raises what it raised, ProcessLost, and the error of what cannot be pickled.

        Cancelled, it kills the process, unless that is just starting.
        """
        given = pickle.dumps(arguments)
        while (process := self._take_idle()) is None:
            await self.start()
        answer = await self._answer(process, lambda: process.ask(given))
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

    async def _begin(self) -> tuple[HandlerProcess, float]:
        """A new process, and until when it may import the program."""
        process = await anyio.to_thread.run_sync(HandlerProcess, self._handler, limiter=self._threads)
        self._all.add(process)
        return process, anyio.current_time() + START_SECONDS_MAX

    def _take_idle(self) -> HandlerProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self._all.discard(process)
        return None

    async def _answer(self, process: HandlerProcess, waiting: Callable[[], R]) -> R:
        """What a method of a process returns; it is killed if it does not come to that."""
        try:
            return await anyio.to_thread.run_sync(waiting, abandon_on_cancel=True, limiter=self._threads)
        except BaseException:
            self._all.discard(process)
            process.kill()
            raise
