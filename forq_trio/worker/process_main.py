"""What a process of a handler does: import the handler by its name, then answer calls until its pipe is closed.

It looks at that pipe between calls only. So the end of the worker has to end the process, with those that it has
started: nobody else would, and by then another worker may have the message. A thread waits for it. As long as the
handler is in C code that keeps other threads from running, only the kernel can do it, and does on Linux.

A call is the pickled arguments, an answer the pickled result, error and frames of the error. What cannot be pickled is
None for a result, and for an error its text, or an outcome of the same kind.
"""

import importlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import current_process, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

from forq_trio.worker.exception_groups import plain
from forq_trio.worker.handlers import Handler
from forq_trio.worker.outcomes import DeadLetter, Discard, Retry, frames_of, reason_of

PROCESS_NAME = "forq handler"
"""How the names of these processes begin."""
LOOK_SECONDS = 1.0
"""How often a process looks whether its worker is its parent. Another one may hold the pipe that tells of its end."""
WORKERS_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What a terminal or a service manager sends to all processes. The worker alone decides what comes of them."""


class ErrorInProcess(Exception):
    """An error of a handler that cannot be pickled, as text"""


def serve_calls(pipe: "Connection[Any, Any]", end: "Connection[Any, Any]", module: str, name: str) -> None:
    """The life of the process, which ends when its pipe is closed. end: a pipe with which nothing is sent, of which
    the worker has the other end."""
    os.setpgrp()
    _kill_when_closed(end)
    threading.Thread(
        target=_end_with_the_worker, args=(end,), name="forq end of the worker", daemon=True
    ).start()
    for number in WORKERS_SIGNALS:
        signal.signal(number, _go_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WORKERS_SIGNALS)
    function, refusal = _handler(module, name)
    with suppress(EOFError, OSError):  # the worker has ended
        pipe.send_bytes(pickle.dumps(refusal))
        while refusal is None:
            pipe.send_bytes(_answer(function, pipe.recv_bytes()))


def end_if_of_a_pool() -> None:
    """End this process, with a line on stderr, if it serves calls of a handler."""
    if current_process().name.startswith(PROCESS_NAME):
        sys.exit(
            "forq: a process of a handler imports the program: write `if __name__ == '__main__':` above app.run()"
        )


def _kill_when_closed(end: "Connection[Any, Any]") -> None:
    """Have the kernel kill this process and those that it has started when nobody has the other end of a pipe."""
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(end, fcntl.F_SETOWN, -os.getpgrp())  # to its group
        fcntl.fcntl(end, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(end, fcntl.F_SETFL, fcntl.fcntl(end, fcntl.F_GETFL) | os.O_ASYNC)


def _end_with_the_worker(end: "Connection[Any, Any]") -> None:
    """Wait until the worker is gone, then kill this process and those that it has started."""
    worker = parent_process()
    assert worker is not None
    while not wait([end], LOOK_SECONDS) and os.getppid() == worker.pid:
        pass
    os.killpg(0, signal.SIGKILL)


def _go_on(number: int, frame: object) -> None:
    pass


def _handler(module: str, name: str) -> tuple[Callable[..., Any], str | None]:
    """The handler's function, or why it cannot be imported."""
    found: Any = None
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        return found, f"its process cannot import it as {name} of {module}: {reason_of(error)}"
    return (found.function if isinstance(found, Handler) else found), None


def _answer(function: Callable[..., Any], given: bytes) -> bytes:
    try:
        result = function(*pickle.loads(given))
    except BaseException as error:
        return pickle.dumps((None, _error_that_goes(error), frames_of(error)))
    return pickle.dumps((_result_that_goes(result), None, ""))


def _result_that_goes(result: object) -> object:
    """What of a result can be pickled. A failure remains one, also in the list of a batch."""
    if isinstance(result, type) and issubclass(result, BaseException):
        result = plain(result)
    if isinstance(result, BaseException):
        return _error_that_goes(result)
    if _can_be_pickled(result):
        return result
    return [_result_that_goes(each) for each in result] if isinstance(result, (list, tuple)) else None


def _error_that_goes(error: BaseException) -> BaseException:
    """The error if it can be pickled, else an outcome of the same kind or its text.

    Neither goes what would mean something in the worker: that it was cancelled, or has to end.
    """
    if isinstance(error, (Exception, SystemExit)) and _can_be_pickled(error):
        return error
    with suppress(Exception):  # an outcome of the program's own may be anything
        if isinstance(error, (Discard, DeadLetter)):
            return (Discard if isinstance(error, Discard) else DeadLetter)(error.reason)
        if isinstance(error, Retry):
            return Retry(error.delay, error.reason)
    return ErrorInProcess(reason_of(error))


def _can_be_pickled(value: object) -> bool:
    """Whether a value can be pickled, and read again."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return False
    return True
