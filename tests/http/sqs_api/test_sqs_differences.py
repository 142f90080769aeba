"""What differs from AWS: each row of the table in docs/sqs.md has a test here, which fails if the row is not true."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from botocore.exceptions import ClientError

from forq_trio.http.sqs_api.attempts import Attempts
from forq_trio.http.sqs_api.details import DetailChanges
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.model import limits
from support.processes import WAIT_SECONDS_MAX

from .conftest import METRICS_SECRET
from .in_process import ACCOUNT, memory_system
from .test_sqs_fifo import send
from .test_sqs_messages import bodies, code, receive
from .test_sqs_queues import attributes, dead_letters

PAGE = Path(__file__).parents[3] / "docs" / "sqs.md"
NUMBERS = {
    "policies and tags of all queues": f"at most {limits.SQS_LONG_DETAILS_BYTES_MAX // limits.MIB} MiB together; "
    f"a queue with up to {limits.SQS_SHORT_DETAILS_BYTES // limits.KIB} KiB does not count",
    "`AWSTraceHeader`": f"at most {limits.SQS_TRACE_LENGTH_MAX:,} characters",
}
"""What the rows with numbers say of this server."""

VISIBLE = "ApproximateNumberOfMessages"
TestT = TypeVar("TestT", bound=Callable[..., Any])
tested: list[str] = []


def row(first_cell: str) -> Callable[[TestT], TestT]:
    """Says of a test which row it is for."""
    tested.append(first_cell)
    return lambda test: test


def rows() -> dict[str, str]:
    """What the table says of this server, by the first cells."""
    _, _, table = PAGE.read_text(encoding="utf-8").partition("\n## What differs from AWS\n")
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line[:1] == "|"
    ]
    return {first: here for first, _, here in cells[2:]}


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    assert tested == list(rows())


def test_the_numbers_of_the_rows() -> None:
    table = rows()
    assert {name: table[name] for name in NUMBERS} == NUMBERS
    assert [name for name, here in table.items() if re.search("[0-9]", here) and name not in NUMBERS] == []


@row("permissions and policies")
def test_policies_are_stored_and_tokens_decide(sqs, connect, token, url) -> None:
    statement = {"Sid": "none", "Effect": "Deny", "Principal": "*", "Action": "SQS:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sqs.add_permission(QueueUrl=url, Label="all", AWSAccountIds=["111122223333"], Actions=["*"])
    shown = json.loads(attributes(sqs, url, "Policy")["Policy"])["Statement"]
    assert [each["Sid"] for each in shown] == ["none", "all"]
    producer = connect(token("produce"))
    producer.send_message(QueueUrl=url, MessageBody="x")
    with pytest.raises(ClientError) as error:
        receive(producer, url)
    assert code(error) == "AccessDenied"


@row("encryption by KMS")
def test_attributes_of_kms_are_stored_and_nothing_is_encrypted(sqs, api, url, name) -> None:
    given = {"KmsMasterKeyId": "alias/that-nobody-made", "KmsDataKeyReusePeriodSeconds": "60"}
    sqs.set_queue_attributes(QueueUrl=url, Attributes=given)
    assert attributes(sqs, url, *given) == given
    sent = sqs.send_message(QueueUrl=url, MessageBody="in clear")
    found = api.get(f"/api/v1/queues/{name}/messages/{sent['MessageId']}").json()
    assert found["content"] == "in clear"


@row("metrics")
def test_metrics_are_those_of_the_server(server, sqs, url, name) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    page = httpx.get(f"{server.url}/metrics", headers={"X-API-Key": METRICS_SECRET}, verify=False).text
    assert f'forq_messages_produced_total{{queue_name="{name}",queue_type="regular"}} 1\n' in page


def until_there_are(sqs: Any, url: str, count: int) -> None:
    """Wait until so many messages of a queue are visible."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while attributes(sqs, url, VISIBLE) != {VISIBLE: str(count)}:
        assert time.monotonic() < until


@row("a message that was received too often")
def test_a_dead_letter_moves_without_another_receive(sqs, name) -> None:
    source, target, _ = dead_letters(sqs, name, VisibilityTimeout="0")
    sqs.send_message(QueueUrl=source, MessageBody="x")
    assert bodies(receive(sqs, source)) == ["x"]
    until_there_are(sqs, target, 1)


@row("counts")
def test_counts_are_exact(sqs, url) -> None:
    for number in range(5):
        sqs.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=900 if number == 4 else 0)
    receive(sqs, url, 1)
    found = attributes(sqs, url)
    kinds = ("", "NotVisible", "Delayed")
    assert [found[VISIBLE + kind] for kind in kinds] == ["3", "1", "1"]


@row("policies and tags of all queues")
async def test_long_policies_and_tags_have_a_bound_together(autojump_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 10_000)
    async with memory_system() as system:
        changes = DetailChanges(system.broker)

        async def store(name: str, length: int) -> None:
            queue = SqsQueue(name, ACCOUNT.region, ACCOUNT)
            half = "x" * (length // 2 - len("Policy"))
            await changes.store(queue, attributes={"Policy": half}, tags={"a": half})

        await store("a", 8_000)
        with pytest.raises(SqsError, match="policies and tags of all queues are too long together"):
            await store("b", 8_000)
        for number in range(20):
            await store(f"short-{number}", limits.SQS_SHORT_DETAILS_BYTES)


@row("`AWSTraceHeader`")
def test_a_trace_header_has_a_bound(sqs, url) -> None:
    def trace(length: int) -> dict[str, Any]:
        return {"AWSTraceHeader": {"DataType": "String", "StringValue": "x" * length}}

    longest = limits.SQS_TRACE_LENGTH_MAX
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageSystemAttributes=trace(longest))
    with pytest.raises(ClientError, match=f"Must be 1 to {longest} characters"):
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageSystemAttributes=trace(longest + 1))


@row("a full queue")
def test_a_full_queue_takes_messages_another_time(sqs, api, url, name) -> None:
    assert api.put(f"/api/v1/queues/{name}/settings", json={"maxMessages": 1}).is_success
    batch = [{"Id": each, "MessageBody": each} for each in ("a", "b")]
    sqs.send_message(QueueUrl=url, MessageBody="first")
    for attempt in (
        lambda: sqs.send_message(QueueUrl=url, MessageBody="second"),
        lambda: sqs.send_message_batch(QueueUrl=url, Entries=batch),
    ):
        with pytest.raises(ClientError) as error:
            attempt()
        assert code(error) == "ServiceUnavailable"
        answered = error.value.response["ResponseMetadata"]
        assert (answered["HTTPStatusCode"], answered["HTTPHeaders"]["retry-after"]) == (503, "1")
    assert bodies(receive(sqs, url)) == ["first"]


@row("PurgeQueue")
def test_a_purge_is_done_when_it_is_answered(sqs, url) -> None:
    for _ in range(3):
        entries = [{"Id": str(number), "MessageBody": "x"} for number in range(10)]
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    receive(sqs, url, 5)
    sqs.purge_queue(QueueUrl=url)
    found = attributes(sqs, url)
    assert {found[name] for name in found if name.startswith("Approximate")} == {"0"}


@row("a deleted queue")
def test_the_name_of_a_deleted_queue_is_free_at_once(sqs, url, name) -> None:
    sqs.delete_queue(QueueUrl=url)
    assert sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "77"})["QueueUrl"] == url
    assert attributes(sqs, url, "VisibilityTimeout") == {"VisibilityTimeout": "77"}


@row("a deleted dead-letter queue")
def test_the_next_dead_letter_makes_a_deleted_queue_again(sqs, name) -> None:
    source, target, _ = dead_letters(sqs, name, VisibilityTimeout="0")
    sqs.delete_queue(QueueUrl=target)
    sqs.send_message(QueueUrl=source, MessageBody="x")
    assert bodies(receive(sqs, source)) == ["x"]
    until = time.monotonic() + WAIT_SECONDS_MAX
    while target not in sqs.list_queues(QueueNamePrefix=name)["QueueUrls"]:
        assert time.monotonic() < until
    assert attributes(sqs, target, "VisibilityTimeout") == {"VisibilityTimeout": "300"}
    assert bodies(receive(sqs, target)) == ["x"]


@row("ReceiveRequestAttemptId")
async def test_attempts_are_remembered_by_the_process() -> None:
    async with memory_system() as system:
        attempts = Attempts(system.broker)
        await system.broker.produce("q.fifo", "x", group="g")
        found = await system.broker.receive("q.fifo", wait_ms=0)
        attempts.note("q.fifo", "one", found)
        again = await attempts.again("q.fifo", "one", None)
        assert again is not None
        assert [each.receipt for each in again] == [each.receipt for each in found]
        after_a_restart = Attempts(system.broker)
        assert await after_a_restart.again("q.fifo", "one", None) is None


@row("SenderId")
def test_the_sender_is_the_name_of_the_token(sqs, connect, token, fifo, name) -> None:
    send(connect(token("produce")), fifo, "x")
    (message,) = receive(sqs, fifo, AttributeNames=["SenderId"])
    assert message["Attributes"] == {"SenderId": f"{name}-produce"}
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])
    send(sqs, fifo, "y")
    (message,) = receive(sqs, fifo, AttributeNames=["SenderId"])
    assert message["Attributes"] == {"SenderId": "000000000000"}
