"""A real `forq serve` in a process of its own, for the tests that need one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.processes import WAIT_SECONDS_MAX, killed_after

SECRET = "a-secret-that-has-thirty-two-characters"


def environment(**more: str) -> dict[str, str]:
    """This process's, with the secret and a free port for the admin UI as the only settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FORQ_")}
    return kept | {"FORQ_AUTH_SECRET": SECRET, "FORQ_UI_ADDR": "127.0.0.1:0"} | more


@dataclass
class RealServer:
    process: subprocess.Popen[str]
    address: str
    ui_address: str | None = None
    key: str = SECRET

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def ui_url(self) -> str:
        """Of the admin UI."""
        if self.ui_address is None:
            raise AssertionError("the server has not told where its admin UI is")
        return f"http://{self.ui_address}"

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS_MAX)


@contextmanager
def real_server(
    database: Path | str,
    address: str = "127.0.0.1:0",
    *,
    ui: bool = False,
    python: Sequence[str] = (sys.executable,),
    **more: str,
) -> Iterator[RealServer]:
    """A server that accepts connections; killed at the end if it still runs.

    database: a file, or the URL of a PostgreSQL database. ui: with the admin UI. python: which one
    runs it, with its options. more: further settings.
    """
    if not ui:
        more["FORQ_UI_ENABLED"] = "false"
    command = [*python, "-m", "forq_trio.cli", "serve", "--api-addr", address]
    if isinstance(database, Path):
        command += ["--db", str(database)]
    else:
        more["FORQ_DB_URL"] = database
    with subprocess.Popen(command, env=environment(**more), stderr=subprocess.PIPE, text=True) as process:
        try:
            event = started(process)
            yield RealServer(process, event["api"], event.get("ui"))
        finally:
            process.kill()


def started(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What the server logs when it accepts connections."""
    assert process.stderr is not None
    lines = []
    with killed_after(process):
        for line in process.stderr:
            lines.append(line)
            if line.startswith("{") and (event := json.loads(line))["event"] == "server.started":
                return event
    raise AssertionError(f"the server did not start: {''.join(lines)}")
