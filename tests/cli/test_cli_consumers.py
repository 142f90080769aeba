"""`forq consumers …`."""

import json

import pytest

from forq_trio import ForqClient, NewMessage

from .conftest import NOWHERE, Forq


@pytest.fixture
def leased(client: ForqClient, queue: str) -> str:
    """A queue whose consumer k has leased two of three messages."""
    client.produce_many(queue, [NewMessage(content) for content in "abc"])
    client.open_consumer(queue, "k")
    client.lease(queue, "k", 1, 1, max_messages=2)
    return queue


def test_consumers_are_listed_and_shown(connected: Forq, leased: str):
    head, row = connected("consumers", "list", leased).out.splitlines()
    assert head == "queue\tconsumer\tlag\topen\tlease\tacknowledged\tgeneration\tused"
    assert row.split("\t")[:7] == [leased, "k", "1", "2", "1", "0", "1"]
    assert leased in connected("consumers", "list").out
    found = json.loads(connected("consumers", "show", leased, "k", "--json").out)
    assert (found["openMessages"], found["oldestReadable"], found["complete"]) == (2, 1, True)
    assert "openMessages\t2" in connected("consumers", "show", leased, "k").out
    (listed,) = connected("consumers", "list", leased, "--json").out.splitlines()
    assert json.loads(listed)["name"] == "k"


def test_none_is_told(connected: Forq, queue: str):
    outcome = connected("consumers", "list", queue)
    assert (outcome.code, outcome.out) == (0, "")
    assert "There is no consumer" in outcome.err


def test_a_release_and_a_deletion_need_a_yes(connected: Forq, client: ForqClient, leased: str):
    for command in ("release", "delete"):
        assert "--yes" in connected("consumers", command, leased, "k").err
    assert client.consumer(leased, "k").open_messages == 2
    outcome = connected("consumers", "release", leased, "k", "--yes")
    assert (outcome.code, outcome.out) == (0, f"2 messages of k given back to {leased}\n")
    assert client.queue_stats(leased).ready == 3
    assert connected("consumers", "delete", leased, "k", "--yes").out == f"k of {leased} is forgotten\n"
    missing = connected("consumers", "show", leased, "k")
    assert missing.code != 0
    assert "no such consumer" in missing.err


def test_without_a_server(forq: Forq):
    assert forq("consumers", "list", "--url", NOWHERE).code != 0
