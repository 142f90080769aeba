"""The processes of the tests: what signals they begin with, and an end for each wait for one."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WAIT_SECONDS_MAX = 45.0
"""How long a test waits for a process, or for anything that is quick: less than pytest-timeout gives the test."""

IGNORED_BY_STARTERS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)


def set_signals() -> None:
    """Set this process's signals, which the processes it starts have too, to what a terminal starts a program with.

    nohup and the background jobs of a shell ignore some, and a blocked one never comes.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in IGNORED_BY_STARTERS:
        if signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)


@contextmanager
def killed_after(process: subprocess.Popen[Any], seconds: float = WAIT_SECONDS_MAX) -> Iterator[None]:
    """Kill the process if the body takes that long, so that whoever reads what it writes comes to an end."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def processor_seconds(pid: int) -> float:
    """What a process has used of the processor so far, to a hundredth of a second; on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
