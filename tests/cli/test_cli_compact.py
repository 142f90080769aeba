"""`forq compact` on a running server: started, followed in a bar, joined, and stopped."""

import json

import pytest

from forq_trio import ForqClient, NewMessage
from forq_trio.model.server.compaction import CompactionInfo

from .conftest import Forq


def make_free_pages(client: ForqClient, queue: str) -> None:
    client.produce_many(queue, [NewMessage("x" * 40_000) for _ in range(100)])
    client.purge(queue)


def paused(client: ForqClient, queue: str) -> CompactionInfo:
    """A compaction that was paused before it had ended."""
    while True:
        make_free_pages(client, queue)
        client.start_compaction()
        if (task := client.pause_compaction()).state == "paused":
            return task


def test_free_space_is_given_back(connected: Forq, client: ForqClient, queue: str):
    make_free_pages(client, queue)
    outcome = connected("compact", terminal=True)
    assert outcome.code == 0
    given, words = outcome.out.split(" ", 1)
    assert int(given.replace(",", "")) > 3_900_000
    assert words == "bytes are given back\n"
    assert " MiB" in outcome.err
    again = connected("compact")
    assert (again.code, again.out) == (0, "0 bytes are given back\n")


def test_a_second_command_joins_a_compaction_and_lets_it_go_on(
    connected: Forq, client: ForqClient, queue: str
):
    task = paused(client, queue)
    joined = json.loads(connected("compact", "--json").out)
    assert (joined["state"], joined["startedAt"]) == ("done", task.started_at)
    assert joined["givenBackBytes"] > task.given_back_bytes


def test_it_is_stopped(connected: Forq, client: ForqClient, queue: str):
    task = paused(client, queue)
    outcome = connected("compact", "--stop")
    assert outcome.code == 0
    assert outcome.out.startswith("the compaction was stopped: ")
    assert client.compaction_info().given_back_bytes >= task.given_back_bytes
    assert json.loads(connected("compact", "--stop", "--json").out)["state"] == "stopped"


@pytest.mark.parametrize("more", [["--url", "http://localhost:1"], ["--stop"]])
def test_a_file_and_a_server_are_not_both_meant(connected: Forq, more: list[str]):
    outcome = connected("compact", "--db", "x.db", *more)
    assert outcome.code == 2
    assert outcome.err.startswith(f"forq: --db and {more[0]} exclude each other\n")
