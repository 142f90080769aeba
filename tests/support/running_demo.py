"""`forq demo` in a process of its own."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forq_trio import ForqClient
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import environment

COMMAND = (sys.executable, "-m", "forq_trio.cli", "demo")
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION", "SSH_TTY")


@dataclass
class RunningDemo:
    process: subprocess.Popen[str]
    printed: str  # before it waits for Ctrl-C

    def said(self, name: str) -> str:
        """What it printed behind this word."""
        found = re.search(rf"^  {name} +(\S+)$", self.printed, re.MULTILINE)
        if found is None:
            raise AssertionError(f"the demo did not say {name}: {self.printed}")
        return found[1]

    @property
    def link(self) -> str:
        """The one-time link."""
        return self.said("Admin UI")

    @property
    def ui_url(self) -> str:
        return self.link.partition("/login")[0]

    @property
    def url(self) -> str:
        return self.said("API")

    @property
    def key(self) -> str:
        return self.said("Secret")

    @property
    def folder(self) -> Path:
        return Path(self.said("Files"))

    def client(self) -> ForqClient:
        return ForqClient(self.url, self.key)

    def ended(self, *signals: signal.Signals) -> tuple[int, str, str]:
        """Send the first signal, and the others once it says that it ends. Its exit code, and what else it wrote."""
        assert self.process.stdout is not None
        first, *others = signals
        with killed_after(self.process):
            self.process.send_signal(first)
            said = ""
            while "Ending" not in said:
                said = self.process.stdout.readline()
                if not said:
                    raise AssertionError("it did not say that it ends")
            for each in others:
                self.process.send_signal(each)
            out, err = self.process.communicate()
        return self.process.wait(WAIT_SECONDS_MAX), out, err


@contextmanager
def running_demo(
    *arguments: str, command: Sequence[str] = COMMAND, **variables: str
) -> Iterator[RunningDemo]:
    """A demo that has printed how to reach it, for somebody without a screen; ended with the block if it still runs."""
    env = {name: value for name, value in environment(FORQ_AUTH_SECRET="").items() if name not in SCREENS}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *arguments], env=env | variables, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            printed = ""
            assert process.stdout is not None
            with killed_after(process):
                while "Ctrl-C ends" not in printed:
                    line = process.stdout.readline()
                    if not line:
                        raise AssertionError(f"the demo did not start: {printed}{process.communicate()[1]}")
                    printed += line
            yield RunningDemo(process, printed)
        finally:
            process.terminate()  # it removes its folder
            with killed_after(process):
                process.wait()
