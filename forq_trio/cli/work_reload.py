"""`forq work module:app --reload`: a process with the Worker, started again when the module's files change.

A change ends the process as SIGTERM does, so that running handlers may finish. If a process has ended with an error,
for example because the module cannot be imported, it has said why, and the next change starts another one.
"""

import importlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from forq_trio.cli.exits import Exit
from forq_trio.cli.output import echo
from forq_trio.cli.work_apps import AppName, directory_of
from forq_trio.model.extras import needing

LOOK_MS = 200


class Reloader:
    """Starts, watches and restarts the process of a Worker."""

    def __init__(self, command: list[str]) -> None:
        self.ended = threading.Event()
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._reported = False

    def start(self) -> None:
        """Start the process, in a group of its own: signals reach it through this one, each once."""
        self._reported = False
        self._process = subprocess.Popen(self._command, process_group=0)

    def on_signal(self, number: int, frame: FrameType | None = None) -> None:
        """Pass a signal on, and end."""
        self.ended.set()
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def run(self, looks: Iterable[set[Any]]) -> int:
        """Start the process, and restart it whenever `looks` yields changes; returns the exit code."""
        self.start()
        for changes in looks:
            if self.ended.is_set():
                break
            if changes:
                self._restart(changes)
            elif self._has_ended_well():
                break
        assert self._process is not None
        code = self._process.wait()
        return Exit.OK if self.ended.is_set() or code == 0 else Exit.FAILED

    def _restart(self, changes: set[Any]) -> None:
        assert self._process is not None
        names = sorted({Path(name).name for _, name in changes})
        echo(f"forq: {', '.join(names[:3])} changed: starting again", err=True)
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if not self.ended.is_set():
            self.start()

    def _has_ended_well(self) -> bool:
        assert self._process is not None
        code = self._process.poll()
        if code and not self._reported:
            self._reported = True
            echo("forq: waiting for a change", err=True)
        return code == 0


def run_reloading(app: AppName, *, stop_when_empty: bool, as_json: bool) -> int:
    """Run a Worker until SIGTERM or SIGINT, and again after each change. Raises CliFailure and ExtraMissing."""
    with needing("reload", "forq work --reload"):
        watchfiles = importlib.import_module("watchfiles")
    directory, recursive = directory_of(app)
    command = [sys.executable, "-m", "forq_trio.cli", "work", app.target]
    command += ["--stop-when-empty"] * stop_when_empty + ["--json"] * as_json
    reloader = Reloader(command)
    before = {each: signal.signal(each, reloader.on_signal) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        return reloader.run(
            watchfiles.watch(
                directory,
                watch_filter=watchfiles.PythonFilter(),
                recursive=recursive,
                stop_event=reloader.ended,
                yield_on_timeout=True,
                rust_timeout=LOOK_MS,
                debounce=LOOK_MS,
            )
        )
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
