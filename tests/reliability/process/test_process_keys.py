"""The concurrency cases of DelayedQueue (D41), with clients that are processes, each with several threads."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from forq_trio import ForqClient, Offering
from forq_trio.model.keys.types import Mode
from reliability.process import key_client
from reliability.process.conftest import ENGINES
from reliability.process.key_client import Batch, Consume, Done, Offers, Task, Tasks
from support.processes import killed_after
from support.real_server import SECRET, environment, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

PROCESSES = 3
HOUR_MS = 3_600_000


class Clients:
    """The processes, and a look behind them."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.client = stack.enter_context(ForqClient(url, SECRET))
        self._processes = [stack.enter_context(started(url)) for _ in range(PROCESSES)]
        for process in self._processes:
            stack.enter_context(killed_after(process))
            stack.callback(process.kill)

    def perform(self, tasks: Sequence[Task]) -> list[tuple[str, ...]]:
        """Perform tasks at the same time, in turn by all processes; returns what came of each, in no order."""
        self.begin(tasks)
        return self.results()

    def begin(self, tasks: Sequence[Task]) -> None:
        for number, process in enumerate(self._processes):
            assert process.stdin is not None
            mine = Tasks(tuple(tasks[number::PROCESSES]))
            process.stdin.write(msgspec.json.encode(mine) + b"\n")
        for (
            process
        ) in self._processes:  # all at once: each has its line, and waits for the rest of the buffer
            assert process.stdin is not None
            process.stdin.flush()

    def results(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for process in self._processes:
            assert process.stdout is not None
            found += msgspec.json.decode(process.stdout.readline(), type=Done).results
        return found

    def outcomes(self, tasks: Sequence[Task]) -> Counter[str]:
        """How many offers came to what."""
        return Counter(outcome for result in self.perform(tasks) for outcome in result)


def started(url: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", key_client.__name__, url]
    paths = environment(PYTHONPATH=str(Path(__file__).parents[2]))
    return subprocess.Popen(command, env=paths, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture(scope="module", params=ENGINES)
def clients(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    if request.param == "sqlite":
        place: Path | str = tmp_path_factory.mktemp("keys") / "forq.db"
    else:
        place = request.getfixturevalue("postgres").new_database()
    with real_server(place) as server, ExitStack() as stack:
        yield Clients(server.url, stack)


@pytest.fixture
def queue() -> str:
    return f"q-{uuid4().hex}"


def one(key: str, content: str = "m", mode: Mode = "createOrUpdate", delay_ms: int | None = None) -> Offering:
    return Offering(content, key=key, mode=mode, delay_ms=delay_ms)


def test_d41_of_ten_that_offer_one_key_one_creates_it(clients: Clients, queue: str):
    tasks = [Offers(queue, (one("k", str(number), delay_ms=HOUR_MS),)) for number in range(10)]
    assert clients.outcomes(tasks) == {"created": 1, "updated": 9}
    assert clients.client.queue_stats(queue).total == 1


def test_d41_of_ten_that_offer_it_if_it_is_absent_one_creates_it(clients: Clients, queue: str):
    tasks = [Offers(queue, (one("k", str(number), "createIfAbsent", HOUR_MS),)) for number in range(10)]
    assert clients.outcomes(tasks) == {"created": 1, "ignored": 9}
    assert clients.client.queue_stats(queue).total == 1


def test_d41_ten_pollers_get_each_of_fifty_messages_once(clients: Clients, queue: str):
    keys = [f"k{number}" for number in range(50)]
    clients.client.offer_many(queue, [one(key) for key in keys])
    consumed = Counter(key for result in clients.perform([Consume(queue, 0)] * 10) for key in result)
    assert consumed == dict.fromkeys(keys, 1)
    assert clients.client.queue_stats(queue).total == 0


def test_d41_a_batch_overlaps_with_single_offers_of_its_keys(clients: Clients, queue: str):
    batch = Batch(queue, tuple(one(f"k{number}", "batch", delay_ms=HOUR_MS) for number in range(20)))
    singles = [Offers(queue, (one(f"k{number}", "single", delay_ms=HOUR_MS),)) for number in range(10)]
    assert clients.outcomes([*singles[:5], batch, *singles[5:]]) == {"created": 20, "updated": 10}
    assert clients.client.queue_stats(queue).total == 20


def test_d41_a_hundred_rapid_updates_from_ten_only_update(clients: Clients, queue: str):
    created = clients.client.offer(queue, "k", "first", delay_ms=HOUR_MS)
    tasks = [
        Offers(queue, tuple(one("k", f"{task} {number}", delay_ms=HOUR_MS) for number in range(10)))
        for task in range(10)
    ]
    outcomes = clients.outcomes(tasks)
    assert outcomes.total() == 100
    assert outcomes.keys() <= {"updated", "ignored"}
    found = clients.client.keyed_message(queue, "k")
    assert found is not None
    assert found.message.id == created.id
    assert found.message.keyed is not None
    assert found.message.keyed.offers == 101


def test_d41_four_producers_of_the_same_keys_and_four_consumers(clients: Clients, queue: str):
    """The queue is paused until all were offered: a key that is consumed may be created again."""
    keys = [f"k{number}" for number in range(200)]
    clients.client.configure(queue, lease_ms=HOUR_MS)
    clients.client.pause(queue)
    producers = [Offers(queue, tuple(one(key, mode="createIfAbsent") for key in keys))] * 4
    assert clients.outcomes(producers) == {"created": 200, "ignored": 600}
    clients.begin([Consume(queue, 1_000)] * 4)
    clients.client.resume(queue)
    assert Counter(key for result in clients.results() for key in result) == dict.fromkeys(keys, 1)
    assert clients.client.queue_stats(queue).total == 0
