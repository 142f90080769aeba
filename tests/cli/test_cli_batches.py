"""`forq batch …`."""

import json

import pytest
from msgspec.structs import replace

from forq_trio import AddressedMessage, ForqClient, NewMessage, NewMessageBatch
from forq_trio.cli.message_batches import lines_of

from .conftest import Forq


@pytest.fixture
def opened(client: ForqClient, queue: str) -> str:
    """A batch with four members of `queue`, of which one is done."""
    then = AddressedMessage(f"{queue}-reports", NewMessage("all done"))
    batch = client.open_batch(NewMessageBatch(then=then, on_dead=then))
    client.add_to_batch(batch.id, [AddressedMessage(queue, NewMessage(f"m{n}")) for n in range(4)])
    (delivery,) = client.receive(queue, wait_ms=0)
    client.ack(queue, delivery.receipt)
    return batch.id


def test_they_are_listed_with_their_progress(connected: Forq, opened: str, queue: str):
    outcome = connected("batch", "list", "-n", "1", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert (found["id"], found["left"], found["done"]) == (opened, 3, 1)
    line = next(each for each in connected("batch", "list").out.splitlines() if each.startswith(opened[:8]))
    assert "25 %" in line
    assert "open" in line


def test_one_is_shown_with_a_bar(connected: Forq, client: ForqClient, opened: str, queue: str):
    lines = connected("batch", "show", opened).out.splitlines()
    assert "         [#####...............] 25 %" in lines
    assert "left     3" in lines
    assert f"then     to {queue}-reports" in lines
    assert json.loads(connected("batch", "show", opened, "--json").out)["id"] == opened
    client.close_batch(opened)
    client.ack(queue, [each.receipt for each in client.receive(queue, max_messages=3, wait_ms=0)])
    (sent,) = client.receive(f"{queue}-reports", wait_ms=0)
    lines = connected("batch", "show", opened).out.splitlines()
    assert f"then     to {queue}-reports: {sent.id}" in lines
    assert "state    ended" in lines


def test_what_its_queue_refuses_is_sent_again_unless_it_has_expired(client: ForqClient, opened: str):
    found = client.batch(opened)
    assert dict(lines_of(replace(found, refused="q.full")))["refused"] == "q.full: it is sent again later"
    expired = replace(found, state="ended", outcome="refused", refused="q.full")
    assert dict(lines_of(expired))["refused"] == "q.full"


def test_they_are_closed_and_abandoned(connected: Forq, client: ForqClient, opened: str):
    outcome = connected("batch", "close", opened, "none")
    assert outcome.out == f"{opened} is closed, 3 left\n"
    assert outcome.err.startswith("forq: none: ")
    assert outcome.err.endswith("(not_found.batch)\n")
    assert outcome.code == 5
    assert connected("batch", "abandon", opened).code != 0
    assert client.batch(opened).state == "closed"
    outcome = connected("batch", "abandon", opened, "--yes")
    assert outcome.out == f"{opened} is abandoned, 3 left\n"
    assert connected("batch", "show", "none").code == 5
