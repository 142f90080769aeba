"""Queue servers that people would take instead, each set to sync its log before it answers, and how to speak to them.

Both come as Debian's packages of their names. `scan` finds an answer at the beginning of bytes, as `wire.scan_response`
does for HTTP; an error of theirs has the status 500.
"""

import re
import shutil
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.load.generator import Address, Conversation, Request, Series
from bench.load.wire import Response, WireError
from bench.targets.servers import STOP_SECONDS_MAX, ServerError

CONNECT_SECONDS_MAX = 10.0
LINE_END = b"\r\n"


class QueueServer(ABC):
    """A running server of another project."""

    name: str
    program: str
    asks_version: str  # the option with which the program prints its version
    durability: str  # what an answer promises with these options
    settled_by: str  # how a consumer says that it is done, and what becomes of messages that it took and lost

    def __init__(self, address: Address, version: str) -> None:
        self.address = address
        self.title = f"{self.name} {version}"

    @staticmethod
    @abstractmethod
    def options(port: int, directory: Path) -> list[str]:
        """Its options, so that it stores in the directory and syncs each change."""

    @staticmethod
    @abstractmethod
    def scan(data: bytes) -> tuple[Response, int] | None:
        """The answer at the beginning of the bytes, and its length; None while it is incomplete."""

    @abstractmethod
    def producing(self, queue: str, content: bytes, series: Series) -> Conversation:
        """Send the same message for ever."""

    @abstractmethod
    def cycling(self, queue: str, content: bytes, steps: list[Series]) -> Conversation:
        """Send, take, settle, for ever."""


class Redis(QueueServer):
    """The reliable queue of Redis' own guide: taken messages wait in a second list, from which they are removed."""

    name = "Redis"
    program = "redis-server"
    asks_version = "--version"
    durability = "fsync of the log (appendfsync always)"
    settled_by = "LREM; what a dead consumer took waits in its list for somebody who looks"

    @staticmethod
    def options(port: int, directory: Path) -> list[str]:
        always = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        return ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory), *always]

    @staticmethod
    def scan(data: bytes) -> tuple[Response, int] | None:
        end = data.find(LINE_END)
        if end < 0:
            return None
        start, kind, text = end + 2, data[:1], data[1:end]
        if kind in b":+":
            return Response(200, text), start
        if kind == b"-":
            return Response(500, text), start
        if kind != b"$":
            raise WireError(f"not an answer of Redis: {data[:40]!r}")
        length = int(text)
        if length < 0:
            return Response(204, b""), start
        stop = start + length
        return (Response(200, data[start:stop]), stop + 2) if len(data) >= stop + 2 else None

    @staticmethod
    def _command(*words: bytes) -> bytes:
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        return b"*%d\r\n" % len(words) + b"".join(parts)

    def producing(self, queue: str, content: bytes, series: Series) -> Conversation:
        request = Request(self._command(b"LPUSH", queue.encode(), content), series)
        while True:
            yield request

    def cycling(self, queue: str, content: bytes, steps: list[Series]) -> Conversation:
        waiting = queue.encode()
        taken = waiting + b"-taken"
        send = Request(self._command(b"LPUSH", waiting, content), steps[0])
        take = Request(self._command(b"LMOVE", waiting, taken, b"RIGHT", b"LEFT"), steps[1])
        while True:
            yield send
            answer = yield take
            if answer.status == 200:
                yield Request(self._command(b"LREM", taken, b"1", answer.body), steps[2])


class Beanstalkd(QueueServer):
    """A work queue with delays, priorities and time-outs, in memory with a log."""

    name = "beanstalkd"
    program = "beanstalkd"
    asks_version = "-v"
    durability = "fsync of the log (-f 0), by each command alone"
    settled_by = "delete by id, fenced by the connection; time to run"

    @staticmethod
    def options(port: int, directory: Path) -> list[str]:
        return ["-l", "127.0.0.1", "-p", str(port), "-b", str(directory), "-f", "0"]

    @staticmethod
    def scan(data: bytes) -> tuple[Response, int] | None:
        end = data.find(LINE_END)
        if end < 0:
            return None
        start, words = end + 2, data[:end].split()
        if words[0] in (b"INSERTED", b"DELETED", b"USING", b"WATCHING"):
            return Response(200, b""), start
        if words[0] != b"RESERVED":
            return Response(500, data[:end]), start
        stop = start + int(words[2])
        return (Response(200, words[1]), stop + 2) if len(data) >= stop + 2 else None

    def producing(self, queue: str, content: bytes, series: Series) -> Conversation:
        yield Request(b"use %s\r\n" % queue.encode(), Series("use"))
        request = Request(b"put 0 0 300 %d\r\n%s\r\n" % (len(content), content), series)
        while True:
            yield request

    def cycling(self, queue: str, content: bytes, steps: list[Series]) -> Conversation:
        yield Request(b"use %s\r\n" % queue.encode(), Series("use"))
        yield Request(b"watch %s\r\n" % queue.encode(), Series("watch"))
        send = Request(b"put 0 0 300 %d\r\n%s\r\n" % (len(content), content), steps[0])
        take = Request(b"reserve\r\n", steps[1])
        while True:
            yield send
            answer = yield take
            if answer.status == 200:
                yield Request(b"delete %s\r\n" % answer.body, steps[2])


QUEUE_SERVERS: tuple[type[QueueServer], ...] = (Redis, Beanstalkd)


@contextmanager
def queue_server(kind: type[QueueServer], data_dir: Path) -> Iterator[QueueServer]:
    """One of them on a free port, with its files in a new directory below `data_dir`. Raises ServerError."""
    program = shutil.which(kind.program)
    if program is None:
        raise ServerError(f"{kind.program} is not installed")
    with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=data_dir) as directory:
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = Address("127.0.0.1", free.getsockname()[1])
        command = [program, *kind.options(address.port, Path(directory))]
        child = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
        try:
            wait_for(address, child)
            yield kind(address, _version(program, kind.asks_version))
        finally:
            child.terminate()
            child.wait(STOP_SECONDS_MAX)


def _version(program: str, option: str) -> str:
    said = subprocess.run([program, option], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else said.strip()


def wait_for(
    address: Address, child: subprocess.Popen[bytes], seconds_max: float = CONNECT_SECONDS_MAX
) -> None:
    """Wait until somebody listens. These servers say nowhere that they do, so it is tried again."""
    for _ in range(int(seconds_max * 20)):
        try:
            socket.create_connection(address, 1.0).close()
            return
        except ConnectionRefusedError:
            try:
                child.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            break
    raise ServerError(f"nobody listens on port {address.port}")
