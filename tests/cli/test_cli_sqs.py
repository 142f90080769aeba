"""Messages and queues of Amazon's clients on the command line: their types, tags and policies."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.real_server import RealServer, real_server
from support.sqs_messages import (
    ATTRIBUTES,
    POLICY,
    STORED,
    TRACE,
    fifo_queue,
    receive_all,
    send_typed,
    sqs_client,
)

from .conftest import Forq
from .test_cli_narrow import STYLE

SEEN = f"""
group            g1
deduplication id order-7
trace header     {TRACE}
attribute colour grün
attribute picture (Binary.png) 1,024 bytes: 00 01 02 03 04 05 06 07 …
attribute price (Number.int) -12
attribute seal (Binary) 3 bytes: 00 ff 10
attribute weight (Number) 5.50

hello
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[RealServer]:
    """Each test has queues of its own."""
    database = tmp_path_factory.mktemp("sqs") / "forq.db"
    with real_server(database, FORQ_HISTORY="on", FORQ_EVENTS="on") as server:
        yield server


@pytest.fixture(scope="module")
def sqs(shop: RealServer) -> Iterator[Any]:
    with sqs_client(shop.url) as client:
        yield client


@pytest.fixture
def at_shop(forq: Forq, shop: RealServer, monkeypatch: pytest.MonkeyPatch) -> Forq:
    """The command, on a terminal of 80 columns where it is on one."""
    monkeypatch.setenv("FORQ_URL", shop.url)
    monkeypatch.setenv("COLUMNS", "80")
    return forq


def without_attempts(shown: str) -> str:
    """What a command printed, without the lines of failed attempts."""
    return "".join(line for line in shown.splitlines(keepends=True) if not line.startswith("attempt "))


def fail(sqs: Any, queue: str) -> str:
    """Send a message that becomes a dead letter of `<queue>-dead.fifo` at once; its id."""
    dead = fifo_queue(sqs, f"{queue}-dead.fifo")
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    url = fifo_queue(sqs, f"{queue}.fifo", RedrivePolicy=policy)
    sent = send_typed(sqs, url, MessageGroupId="g1", MessageDeduplicationId="order-7")
    (message,) = receive_all(sqs, url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    return sent


def test_a_dead_letter_and_a_finished_message_show_what_they_have(at_shop, sqs) -> None:
    sent = fail(sqs, "shown")
    assert without_attempts(at_shop("dead", "show", "shown-dead.fifo", sent).out).endswith(SEEN)
    found = json.loads(at_shop("dead", "show", "shown-dead.fifo", sent, "--json").out)
    assert {name: found["attributes"][name] for name in STORED} == STORED
    assert json.loads(found["attributes"]["AWS.SQS"])["types"]["price"] == "Number.int"
    (dead,) = receive_all(sqs, sqs.get_queue_url(QueueName="shown-dead.fifo")["QueueUrl"])
    assert dead["MessageAttributes"] == ATTRIBUTES
    at_shop("queue", "purge", "shown-dead.fifo", "--yes")
    assert without_attempts(at_shop("history", "show", "shown-dead.fifo", sent).out).endswith(SEEN)


def test_a_received_message_shows_what_it_has(at_shop, sqs) -> None:
    send_typed(sqs, fifo_queue(sqs, "taken.fifo"), MessageGroupId="g1", MessageDeduplicationId="order-7")
    shown = STYLE.sub("", at_shop("receive", "taken.fifo", "--ack", terminal=True).out)
    assert shown.partition("\n")[2] == (
        f"group g1\ndeduplication id order-7\ntrace header {TRACE}\ncolour=grün\nprice=-12 (Number.int)\n"
        "weight=5.50 (Number)\nseal=3 bytes: 00 ff 10 (Binary)\n"
        "picture=1,024 bytes: 00 01 02 03 04 05 06 07 … (Binary.png)\nhello\n\n"
    )


def test_an_edited_copy_has_the_types_of_the_original(at_shop, sqs) -> None:
    sent = fail(sqs, "edited")
    changes = ("--attribute", "price=13", "--attribute", "weight=heavy", "--drop-attribute", "picture")
    assert at_shop("dead", "edit", "edited-dead.fifo", sent, *changes).code == 0
    (copy,) = receive_all(sqs, sqs.get_queue_url(QueueName="edited.fifo")["QueueUrl"])
    assert copy["MessageAttributes"] == {
        **{name: ATTRIBUTES[name] for name in ("colour", "seal")},
        "price": {"DataType": "Number.int", "StringValue": "13"},
        "weight": {"DataType": "String", "StringValue": "heavy"},
    }
    assert copy["Attributes"]["MessageGroupId"] == "g1"


def test_dead_letters_and_finished_messages_go_back_as_they_were(at_shop, sqs) -> None:
    sent = fail(sqs, "back")
    assert at_shop("dead", "redrive", "back-dead.fifo", sent).code == 0
    url = sqs.get_queue_url(QueueName="back.fifo")["QueueUrl"]
    (redriven,) = receive_all(sqs, url)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=redriven["ReceiptHandle"])
    assert at_shop("history", "requeue", "back.fifo", sent).code == 0
    (again,) = receive_all(sqs, url)
    for message in (redriven, again):
        assert message["MessageAttributes"] == ATTRIBUTES
        assert message["Attributes"]["MessageGroupId"] == "g1"


def test_the_settings_of_a_queue_are_followed_by_what_its_clients_set(at_shop, sqs) -> None:
    url = fifo_queue(sqs, "named.fifo", Policy=POLICY)
    sqs.tag_queue(QueueUrl=url, Tags={"team": "mail"})
    shown = at_shop("queue", "show", "named.fifo")
    assert shown.out.endswith("type\tFIFO\tSQS\ndeduplication\tby content\tSQS\ntag team\tmail\tSQS\n")
    assert shown.err == "named.fifo has a policy, which --json prints.\n"
    found = json.loads(at_shop("queue", "show", "named.fifo", "--json").out)["settings"]["sqs"]
    assert (found["tags"], found["attributes"]["Policy"]) == ({"team": "mail"}, POLICY)
    lines = STYLE.sub("", at_shop("queue", "show", "named.fifo", terminal=True).out).splitlines()
    assert max(map(len, lines)) <= 80


def test_lists_and_events_have_them_like_all_others(at_shop, sqs) -> None:
    fail(sqs, "listed")
    with_events = at_shop("events", "--queue", "listed.fifo").out.splitlines()
    kinds = [line.split()[2] for line in with_events]
    assert kinds == ["produced", "delivered", "lease_expired", "dead_lettered"]
    assert with_events[-1].endswith(" to listed-dead.fifo failed")
    names = [line.split("\t")[0] for line in at_shop("queues").out.splitlines()]
    assert {"listed.fifo", "listed-dead.fifo"} <= set(names)
    assert "\tlisted.fifo\t" in at_shop("dead", "list", "listed-dead.fifo").out
