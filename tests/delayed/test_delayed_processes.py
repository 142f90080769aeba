"""Many processes on one queue of a real server. Two servers on one file are refused: clients are many."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from forq_trio import ForqClient
from support.processes import killed_after
from support.real_server import SECRET, environment, real_server

PROCESSES = 4
TESTS = Path(__file__).parents[1]

pytestmark = [pytest.mark.process, pytest.mark.tier2]


class Crew:
    """Processes that each do the same at the same time."""

    def __init__(self, processes: list[subprocess.Popen[str]], client: ForqClient) -> None:
        self._processes = processes
        self.client = client

    def do(self, case: str, name: str) -> list[list[str]]:
        """What each process says about this case on this queue."""
        for each in self._processes:
            each.stdin.write(f"{case} {name}\n")
            each.stdin.flush()
        results = []
        for each in self._processes:
            with killed_after(each):
                line = each.stdout.readline()
            assert line, f"a process ended in {case}"
            results.append(json.loads(line))
        return results

    def left(self, name: str) -> int:
        """How many messages the queue has."""
        info = self.client.queue_stats(f"{name}.str")
        return info.ready + info.delayed + info.processing


@pytest.fixture(scope="module")
def crew(tmp_path_factory) -> Iterator[Crew]:
    with real_server(tmp_path_factory.mktemp("crew") / "forq.db") as server:
        variables = environment(FORQ_URL=server.url, PYTHONPATH=f"{TESTS.parent}{os.pathsep}{TESTS}")
        command = [sys.executable, "-m", "delayed.consumer_process"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [subprocess.Popen(command, env=variables, **pipes) for _ in range(PROCESSES)]
        try:
            with ForqClient(server.url, SECRET) as client:
                yield Crew(processes, client)
        finally:
            for each in processes:
                each.stdin.close()
                with killed_after(each):
                    each.wait()
                each.stdout.close()
        assert [each.returncode for each in processes] == [0] * PROCESSES


def count(results: list[list[str]]) -> Counter:
    return Counter(each for result in results for each in result)


def test_d41_offers_of_one_key_create_once(crew) -> None:
    assert count(crew.do("same_key", "one")) == {"created": 1, "updated": 10 * PROCESSES - 1}


def test_d41_offers_that_must_not_exist_create_once(crew) -> None:
    assert count(crew.do("if_not_exists", "two")) == {"created": 1, "ignored": 10 * PROCESSES - 1}


def test_d41_each_message_comes_once(crew) -> None:
    offered = count(crew.do("produce", "three"))
    assert offered == {"created": 200, "ignored": 200 * (PROCESSES - 1)}
    assert count(crew.do("consume", "three")) == Counter({f"{n}": 1 for n in range(200)})
    assert crew.left("three") == 0


def test_d41_batches_beside_single_offers(crew) -> None:
    found = count(crew.do("batch_and_single", "four"))
    assert found["created"] == 20
    assert found["created"] + found["updated"] + found["ignored"] == 30 * PROCESSES
    assert crew.left("four") == 20


def test_d41_updates_of_one_key_only_update(crew) -> None:
    crew.do("same_key", "five")
    found = count(crew.do("same_key", "five"))
    assert set(found) == {"updated"}
    assert found.total() == 10 * PROCESSES


def test_d41_producers_of_the_same_keys_beside_consumers(crew) -> None:
    """Each key is taken; one that is offered again after its ack is a new message, so it may be taken more often."""
    taken = count(crew.do("produce_and_consume", "six"))
    assert set(taken) == {f"{n}" for n in range(200)}
    assert crew.left("six") == 0
