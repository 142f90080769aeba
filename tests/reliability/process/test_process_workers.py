"""Workers and their server are killed again and again: every message is handled, and no worker has too many.

FORQ_TEST_EFFORT sets how often. In the soak as often as there is time.
"""

import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

import pytest
import trio

from forq_trio import AsyncForqClient
from forq_trio.model.errors import ForqUnreachable
from reliability.process import working
from support.effort import count, many_trials, soak_seconds
from support.real_server import SECRET, RealServer, environment, real_server

pytestmark = pytest.mark.process

ROUNDS = count("worker_kills")
WORKERS = 2
SENDS = 30
LATE_SECONDS_MAX = 60.0
ATTEMPTS_MAX = 1_000


class Books:
    """What the handlers said, in the order in which it was read: running handlers by message and worker.

    What different workers said may be read in another order than it was said in, so each line has its time.
    """

    def __init__(self) -> None:
        self.running: dict[tuple[int, str], int] = {}
        self.done: defaultdict[str, int] = defaultdict(int)
        self.begun: dict[str, list[tuple[int, int]]] = defaultdict(list)  # times and attempts by message
        self.changed = threading.Condition()
        self.violations: list[str] = []

    def note(self, worker: int, line: str) -> None:
        """A handler of a worker began, failed or is done."""
        what, content, *numbers = line.split()
        attempt, at = (int(each) for each in numbers)
        with self.changed:
            if what == "begun":
                self._begin(worker, content, attempt, at)
            else:
                self.running.pop((worker, content), None)
            if what == "done":
                self.done[content] += 1
                self.changed.notify()

    def wait_for(self, sent: set[str], left: int = 0) -> None:
        """Return as soon as all of them but `left` were handled, or when none is for a long time."""
        with self.changed:
            while len(sent - self.done.keys()) > left and self.changed.wait(LATE_SECONDS_MAX):
                continue

    def killed(self, worker: int) -> None:
        """A worker's process is gone, and its handlers with it."""
        with self.changed:
            self.running = {key: attempt for key, attempt in self.running.items() if key[0] != worker}

    def check(self, sent: set[str]) -> None:
        """All that was sent was handled; nothing is left running. Raises AssertionError for whatever was noted."""
        for content, begun in self.begun.items():
            attempts = [attempt for _, attempt in sorted(begun)]
            # The same number may come again: what a lease's end interrupts is given back uncounted.
            if attempts != sorted(attempts):
                self.violations.append(f"{content} came as attempts {attempts}")
        assert self.violations == []
        assert self.running == {}
        assert sent - self.done.keys() == set()

    def _begin(self, worker: int, content: str, attempt: int, at: int) -> None:
        self.begun[content].append((at, attempt))
        self.running[worker, content] = attempt
        busy = sum(each == worker for each, _ in self.running)
        if busy > working.SLOTS:
            self.violations.append(f"worker {worker} has {busy} messages in process")


@contextmanager
def working_process(url: str, number: int, books: Books) -> Iterator[subprocess.Popen[str]]:
    """A worker process, whose lines are read beside; killed at the end, unless it has ended."""
    command = [sys.executable, "-m", working.__name__, url]
    more = {"PYTHONPATH": ":".join(sys.path), "FORQ_AUTH_SECRET": SECRET}
    with subprocess.Popen(command, env=environment(**more), stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                books.note(number, line)
            books.killed(number)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield process
        finally:
            process.kill()
            reader.join()


async def send(url: str, sent: set[str], prefix: str) -> None:
    """Send messages, and note which were answered."""
    async with AsyncForqClient(url, SECRET) as client:
        await client.configure(working.QUEUE, max_attempts=ATTEMPTS_MAX)
        for number in range(SENDS):
            content = f"{prefix}-{number}"
            try:
                await client.produce(working.QUEUE, content)
            except ForqUnreachable:
                return
            sent.add(content)


def work_and_kill(place: Path | str, rng, rounds: int, seconds: float = 0.0) -> Books:
    """Each round kills a worker or the server while they work, and starts it again.

    It sends once most of what it sent before is handled: however fast the machine, the handlers take their time.
    """
    books, sent = Books(), set()
    address, end, done, number = "127.0.0.1:0", monotonic() + seconds, 0, WORKERS
    with ExitStack() as workers, ExitStack() as servers:
        server: RealServer = servers.enter_context(real_server(place, address))
        address = server.url.removeprefix("http://")
        running = [workers.enter_context(working_process(server.url, each, books)) for each in range(WORKERS)]
        while done < rounds or monotonic() < end:
            books.wait_for(sent, SENDS)
            trio.run(send, server.url, sent, f"{done}")
            if done % 2:
                server.process.kill()
                servers.close()
                server = servers.enter_context(real_server(place, address))
            else:
                which = rng.randrange(WORKERS)
                running[which].kill()
                running[which] = workers.enter_context(working_process(server.url, number, books))
                number += 1
            done += 1
        books.wait_for(sent)
        for process in running:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(LATE_SECONDS_MAX) for process in running] == [0] * WORKERS
    print(f"{done} kills: {len(sent)} sent, {sum(books.done.values())} times handled")
    books.check(sent)
    return books


@many_trials
def test_killed_again_and_again_every_message_is_handled(place, rng) -> None:
    work_and_kill(place, rng, ROUNDS)


@pytest.mark.soak
def test_killed_for_long_every_message_is_handled(place, rng) -> None:
    work_and_kill(place, rng, 4, soak_seconds())


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([f"begun {number} 1 {number}" for number in range(working.SLOTS + 1)], "in process"),
        (["begun a 2 10", "done a 2 11", "begun a 1 12"], r"a came as attempts \[2, 1\]"),
        (["begun a 1 10", "failed a 1 11"], "{'a'}"),
        (["begun b 1 10"], "'b'"),
    ],
)
def test_the_books_notice_what_is_wrong(lines, found) -> None:
    books = Books()
    for line in lines:
        books.note(0, line)
    with pytest.raises(AssertionError, match=found):
        books.check({"a"} if lines[0].startswith("begun a") else set())


def test_lines_of_two_workers_may_be_read_late() -> None:
    books = Books()
    for worker, line in ((1, "begun a 2 12"), (1, "done a 2 13"), (0, "begun a 1 10"), (0, "failed a 1 11")):
        books.note(worker, line)
    books.check({"a"})
