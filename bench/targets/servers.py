"""The servers under load: started here as processes of their own, or somebody else's by its URL."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.load.api import Api
from bench.load.wire import WireError

KEY = "benchmark-key-" + "k" * 32
METRICS_KEY = "benchmark-metrics-" + "m" * 32
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0
LOG_LINES_KEPT = 30
ROOT = Path(__file__).parents[2]


class ServerError(Exception):
    """A server under test does not start, answer or stop as it should; the message says what it wrote last"""


@dataclass(frozen=True)
class Server:
    """A running server. pid: None when it is not known; durability: what its answers promise, in its own words.

    ui: the address of its admin UI, None where there is none.
    """

    name: str
    api: Api
    pid: int | None
    durability: str
    metrics_key: str | None = None
    ui: str | None = None


class _Process:
    """A child process whose output is read to the end by a thread, so that it never blocks on writing."""

    def __init__(
        self,
        command: list[str],
        environment: Mapping[str, str],
        output: Literal["stdout", "stderr"],
        directory: Path = ROOT,
    ) -> None:
        stdout = subprocess.PIPE if output == "stdout" else subprocess.DEVNULL
        stderr = subprocess.PIPE if output == "stderr" else None
        self.child = subprocess.Popen(
            command, cwd=directory, env=environment, text=True, stdout=stdout, stderr=stderr
        )
        self.lines: deque[str] = deque(maxlen=LOG_LINES_KEPT)
        self._stream = self.child.stdout if output == "stdout" else self.child.stderr
        self._address = ""
        self._announced = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._stream is not None
        for line in self._stream:
            self.lines.append(line.rstrip())
            if not self._announced.is_set() and (address := _announced_address(line)):
                self._address = address
                self._announced.set()
        self._announced.set()

    def address(self) -> str:
        """host:port once the server has said it. Raises ServerError if it ends or stays silent."""
        self._announced.wait(START_SECONDS_MAX)
        if not self._address:
            raise ServerError(f"the server did not say where it listens; it wrote: {self.last_words()}")
        return self._address

    def started(self, member: str) -> str | None:
        """What Forq's log line `server.started` says about a member."""
        for line in self.lines:
            if '"server.started"' in line:
                return json.loads(line).get(member)
        return None

    def last_words(self) -> str:
        return "\n".join(self.lines) or "nothing"

    def kill(self) -> None:
        """End it without a chance to tidy up."""
        self.child.kill()
        self.child.wait()
        self._close()

    def _close(self) -> None:
        self._thread.join(STOP_SECONDS_MAX)
        if self._stream is not None:
            self._stream.close()

    def stop(self) -> None:
        """End it as a supervisor would. Raises ServerError if it had ended by itself, or does not end well."""
        ended_by_itself = self.child.poll() is not None
        if not ended_by_itself:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            raise ServerError(f"the server did not stop; it wrote: {self.last_words()}") from None
        finally:
            self._close()
        code = self.child.returncode
        if self._address and (ended_by_itself or code not in (0, -signal.SIGTERM)):
            when = "during the measurement" if ended_by_itself else "when asked to stop"
            raise ServerError(f"the server ended {when} with code {code}; it wrote: {self.last_words()}")


def _announced_address(line: str) -> str | None:
    """Where a server says it listens: a bare port, or Forq's log line `server.started`."""
    text = line.strip()
    if text.isdigit():
        return f"127.0.0.1:{text}"
    try:
        record = json.loads(text)
    except ValueError:
        return None
    if isinstance(record, dict) and record.get("event") == "server.started":
        return str(record["api"]).removeprefix("http://")
    return None


def forq_environment(database: Path | str, durability: str) -> dict[str, str]:
    """The environment of `forq serve` for a benchmark: nothing of the caller's FORQ_* settings leaks in.

    database: a file, or the URL of a database.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FORQ_")}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), inherited.get("PYTHONPATH", "")])),
        "FORQ_AUTH_SECRET": KEY,
        "FORQ_DB_URL" if isinstance(database, str) else "FORQ_DB_PATH": str(database),
        "FORQ_DURABILITY": durability,
        "FORQ_API_ADDR": "127.0.0.1:0",
        "FORQ_UI_ADDR": "127.0.0.1:0",
        "FORQ_METRICS_ENABLED": "true",
        "FORQ_METRICS_AUTH_SECRET": METRICS_KEY,
    }


@contextmanager
def forq_server(
    data_dir: Path, durability: str, settings: Mapping[str, str] | None = None, checkout: Path = ROOT
) -> Iterator[Server]:
    """`forq serve` of a checkout on a new database in a directory of its own below `data_dir`.

    settings: more of its environment.
    """
    with (
        tempfile.TemporaryDirectory(prefix="forq-bench-", dir=data_dir) as directory,
        forq_server_on(
            Path(directory) / "forq.db", durability, settings=settings, checkout=checkout
        ) as server,
    ):
        yield server


@contextmanager
def forq_server_on(
    database: Path | str,
    durability: str,
    *,
    kill: bool = False,
    settings: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> Iterator[Server]:
    """`forq serve` of a checkout on this database, healthy. kill: end it by kill -9 instead of asking it to stop."""
    command = [sys.executable, "-m", "forq_trio.cli", "serve"]
    environment = {**forq_environment(database, durability), **(settings or {})}
    process = _Process(command, environment, "stderr", checkout)
    try:
        api = Api(f"http://{process.address()}", KEY)
        said = check_health(api) or durability
        yield Server("forq-trio", api, process.child.pid, f"fsync={said}", METRICS_KEY, process.started("ui"))
    finally:
        if kill:
            process.kill()
        else:
            process.stop()


@contextmanager
def script_server(script: str, *arguments: str) -> Iterator[Server]:
    """One of the yardstick servers beside this file (bare_204.py, noop_server.py), which store nothing."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    process = _Process(command, environment, "stdout")
    try:
        api = Api(f"http://{process.address()}", KEY)
        yield Server(script.removesuffix(".py"), api, process.child.pid, "stores nothing")
    finally:
        process.stop()


def running_server(url: str, key: str, pid: int | None, durability: str | None) -> Server:
    """A server somebody else runs. durability: how its operator describes it; None asks the server itself.

    Raises ServerError if it is not healthy.
    """
    api = Api(url, key)
    said = check_health(api)
    return Server(url, api, pid, durability or (f"fsync={said}" if said else "unknown (see --fsync)"))


def check_health(api: Api) -> str | None:
    """Ask the server's health check, which performs a real database operation; return the durability it states.

    None when it states none (the Go original does not). Raises ServerError when it is not healthy.
    """
    try:
        response = api.exchange(api.get("/healthcheck?verbose"))
    except (OSError, WireError) as error:
        raise ServerError(f"{api.url} does not answer: {error}") from error
    if response.status not in (200, 204):
        raise ServerError(f"{api.url}/healthcheck answers {response.status}: {response.body[:200]!r}")
    try:
        return str(json.loads(response.body)["durability"])
    except (ValueError, KeyError, TypeError):
        return None
