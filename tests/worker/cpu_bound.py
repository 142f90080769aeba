"""Handlers that run in processes, which import this module. What they do is in their payload."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forq_trio.worker import DeadLetter, Discard, Job, Retry, Worker


class Stubborn(Exception):
    """It cannot be made again from what it says."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{words} {code}")


class Declined(Exception):
    """It can."""


class Refused(DeadLetter):
    """An outcome that has an error which cannot be made again."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class Later(Retry):
    def __init__(self, cause: Exception) -> None:
        super().__init__(60, cause)
        self.cause = cause


class Dropped(Discard):
    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


def local_class() -> type[Exception]:
    class Local(Exception): ...

    return Local


def segfault() -> None:
    import ctypes

    ctypes.string_at(0)


DEEDS: dict[str, Callable[[], Any]] = {
    "return": lambda: "done",
    "lock": threading.Lock,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": segfault,
    "exit": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit("enough"),
    "retry": lambda: Retry(60, "later"),
    "dead": lambda: DeadLetter("never"),
    "refused": lambda: Refused(Stubborn(402, "no money")),
    "dropped": lambda: Dropped(Stubborn(402, "no money")),
    "later": lambda: Later(Stubborn(7, "no")),
    "returned": lambda: Stubborn(7, "no"),
    "class": local_class,
    "group": lambda: ExceptionGroup("of two", [ValueError("bad"), OSError("away")]),
}


def raising(error: BaseException) -> Any:
    raise error


DEEDS["declined"] = lambda: raising(Declined("no money"))
DEEDS["stubborn"] = lambda: raising(Stubborn(7, "no"))
DEEDS["refusing"] = lambda: raising(Refused(Stubborn(402, "no money")))
DEEDS["interrupt"] = lambda: raising(KeyboardInterrupt())

app = Worker(drain_seconds=0)


@app.on("cpu", pool="process", concurrency=2, retry=[60], dead=(Declined,))
def work(deed: str) -> object:
    return DEEDS[deed]()


@app.on("noted", pool="process", concurrency=1, batch=2)
def note(files: list[str], jobs: list[Job]) -> list[object]:
    """Write the process's number into each file, and what is known of its job."""
    for file, job in zip(files, jobs, strict=True):
        Path(file).write_text(f"{os.getpid()} {job.id} {job.attempt} {job.state}")
    return [DeadLetter(each) if "dead" in each else None for each in files]


@app.on("mixed", pool="process", concurrency=1, batch=9, retry=[60])
def mix(deeds: list[str]) -> list[object]:
    return [DEEDS[each]() for each in deeds]


@app.on("hanging", pool="process", concurrency=1)
def hang(pipe: str) -> None:
    """Tell one's number through a named pipe, and never return."""
    with open(pipe, "w") as told:
        told.write(str(os.getpid()))
    threading.Event().wait()
