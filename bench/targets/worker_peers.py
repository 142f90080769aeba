"""Workers of other libraries with an empty handler, each in a process of its own: `python -m` this module's name.

Its arguments are the library, a directory and a number of messages. It stores that many messages, processes them, and
prints how many it has processed a second.
"""

import itertools
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

SLOTS = 32
CONTENT = "x" * 200
REDIS = (
    "--port",
    "0",
    "--save",
    "",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--logfile",
    "redis.log",
)


class Handled:
    """An empty handler that signals when it was called `count` times, from any thread."""

    def __init__(self, count: int) -> None:
        self.all = threading.Event()
        self._count = count
        self._calls = itertools.count(1)

    def __call__(self, content: str) -> None:
        if next(self._calls) == self._count:
            self.all.set()


def huey(directory: Path, count: int) -> float:
    """32 threads; a message is removed by the fsynced commit that takes it."""
    import huey

    handled = Handled(count)
    queue = huey.SqliteHuey(filename=str(directory / "huey.db"), fsync=True, results=False)
    task = queue.task(name="handle")(handled)
    for _ in range(count):
        task(CONTENT)
    consumer = queue.create_consumer(workers=SLOTS, periodic=False, initial_delay=0.001, max_delay=0.01)
    began = perf_counter()
    consumer.start()
    handled.all.wait()
    seconds = perf_counter() - began
    consumer.stop()
    return count / seconds


def dramatiq(directory: Path, count: int) -> float:
    """32 threads on the broker in memory: nothing is stored."""
    import dramatiq
    from dramatiq.brokers.stub import StubBroker

    broker = StubBroker()
    dramatiq.set_broker(broker)
    handled = Handled(count)
    actor = dramatiq.actor(handled.__call__, actor_name="handle")
    for _ in range(count):
        actor.send(CONTENT)
    worker = dramatiq.Worker(broker, worker_timeout=10, worker_threads=SLOTS)
    began = perf_counter()
    worker.start()
    handled.all.wait()
    seconds = perf_counter() - began
    worker.stop()
    return count / seconds


def nothing(content: str) -> None:
    """The handler for RQ, which imports it by its name."""


def rq(directory: Path, count: int) -> float:
    """One at a time in one process, on a Redis that fsyncs each command."""
    import redis
    import rq

    socket = directory / "redis.sock"
    with subprocess.Popen(["redis-server", *REDIS, "--unixsocket", str(socket)], cwd=directory) as server:
        try:
            connection = redis.Redis(unix_socket_path=str(socket))
            until = perf_counter() + 20
            while not _answers(connection, redis.ConnectionError):
                if perf_counter() > until or server.poll() is not None:
                    raise RuntimeError("redis-server does not answer")
            queue = rq.Queue(connection=connection)
            for _ in range(count):
                queue.enqueue("bench.targets.worker_peers.nothing", CONTENT, result_ttl=0)
            worker = rq.SimpleWorker([queue], connection=connection)
            began = perf_counter()
            worker.work(burst=True, logging_level="ERROR")
            return count / (perf_counter() - began)
        finally:
            server.terminate()


def _answers(connection: object, error: type[Exception]) -> bool:
    try:
        return bool(connection.ping())  # type: ignore[attr-defined]
    except error:
        return False


PEERS: dict[str, Callable[[Path, int], float]] = {"huey": huey, "dramatiq": dramatiq, "rq": rq}

if __name__ == "__main__":
    logging.disable(logging.WARNING)
    _name, _directory, _count = sys.argv[1:]
    print(PEERS[_name](Path(_directory), int(_count)))
