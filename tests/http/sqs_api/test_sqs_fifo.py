"""FIFO queues through boto3: order, deduplication, groups, attempts."""

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from .test_sqs_messages import bodies, receive


def send(sqs: Any, url: str, body: str, group: str = "g", **more: Any) -> dict[str, Any]:
    return dict(sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group, **more))


def test_one_receive_may_have_several_of_a_group_and_the_next_none(sqs, fifo) -> None:
    for body in ("a", "b", "c"):
        send(sqs, fifo, body)
    first = receive(sqs, fifo, 2)
    assert bodies(first) == ["a", "b"]
    assert receive(sqs, fifo) == []
    for each in first:
        sqs.delete_message(QueueUrl=fifo, ReceiptHandle=each["ReceiptHandle"])
    assert bodies(receive(sqs, fifo)) == ["c"]


def test_a_message_that_another_api_sent_without_a_group_is_a_group_of_its_own(sqs, api, fifo) -> None:
    queue = fifo.rpartition("/")[2]
    for content in ("a", "b"):
        assert api.post(f"/api/v1/queues/{queue}/messages", json={"content": content}).is_success
    first, second = receive(sqs, fifo, 1), receive(sqs, fifo, 1, AttributeNames=["All"])
    assert bodies([*first, *second]) == ["a", "b"]
    (message,) = second
    of_group = {"MessageGroupId": message["MessageId"], "MessageDeduplicationId": message["MessageId"]}
    assert of_group.items() <= message["Attributes"].items()


def test_sequence_numbers_grow(sqs, fifo) -> None:
    numbers = [send(sqs, fifo, f"{n}")["SequenceNumber"] for n in range(3)]
    assert all(len(each) == 20 for each in numbers)
    assert numbers == sorted(set(numbers))


def test_a_duplicate_is_answered_as_the_first_and_not_delivered(sqs, fifo) -> None:
    first, second = send(sqs, fifo, "a"), send(sqs, fifo, "a")
    assert (first["MessageId"], first["SequenceNumber"]) == (second["MessageId"], second["SequenceNumber"])
    (message,) = receive(sqs, fifo)
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])
    assert send(sqs, fifo, "a")["MessageId"] == first["MessageId"]
    assert receive(sqs, fifo) == []


def test_a_queue_that_is_deleted_and_made_again_knows_no_duplicates(sqs, fifo) -> None:
    first = send(sqs, fifo, "a")
    sqs.delete_queue(QueueUrl=fifo)
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    sqs.create_queue(QueueName=fifo.rpartition("/")[2], Attributes=attributes)
    second = send(sqs, fifo, "a")
    assert second["MessageId"] != first["MessageId"]
    assert bodies(receive(sqs, fifo)) == ["a"]


def test_the_scope_of_ids_may_be_the_group(sqs, name) -> None:
    attributes = {
        "FifoQueue": "true",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"]
    for group in ("g", "h", "g"):
        send(sqs, url, group, group, MessageDeduplicationId="same")
    messages = receive(sqs, url, AttributeNames=["All"])
    assert sorted(bodies(messages)) == ["g", "h"]
    assert {each["Attributes"]["MessageDeduplicationId"] for each in messages} == {"same"}
    assert {each["Attributes"]["MessageGroupId"] for each in messages} == {"g", "h"}


def test_a_receive_that_is_tried_again_gets_the_same(sqs, fifo) -> None:
    send(sqs, fifo, "a")
    first = receive(sqs, fifo, ReceiveRequestAttemptId="one")
    assert bodies(first) == ["a"]
    assert receive(sqs, fifo, ReceiveRequestAttemptId="one") == first
    assert receive(sqs, fifo, ReceiveRequestAttemptId="two") == []


def test_a_receipt_expires_with_its_visibility(sqs, fifo) -> None:
    send(sqs, fifo, "a")
    (message,) = receive(sqs, fifo, VisibilityTimeout=0)
    with pytest.raises(ClientError, match="The receipt handle has expired"):
        sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "must contain the parameter MessageGroupId"),
        ({"MessageGroupId": "g", "DelaySeconds": 2}, "Value 2 for parameter DelaySeconds is invalid"),
        ({"MessageGroupId": "g g"}, "MessageGroupId can only include"),
        ({"MessageGroupId": "g" * 129}, "MessageGroupId can only include"),
    ],
)
def test_sends_that_are_refused(sqs, fifo, parameters, message) -> None:
    with pytest.raises(ClientError, match=message):
        sqs.send_message(QueueUrl=fifo, MessageBody="x", **parameters)


def test_an_id_is_needed_where_contents_are_not_compared(sqs, name) -> None:
    url = sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    with pytest.raises(ClientError, match="ContentBasedDeduplication enabled or MessageDeduplicationId"):
        send(sqs, url, "x")


def test_a_queue_that_another_api_made_is_a_fifo_queue_by_its_name(sqs, api, name) -> None:
    for content in ("a", "b"):
        body = {"content": content, "group": "g"}
        assert api.post(f"/api/v1/queues/{name}.fifo/messages", json=body).is_success
    assert bodies(receive(sqs, f"{name}.fifo", 1)) == ["a"]
    assert receive(sqs, f"{name}.fifo") == []


@pytest.mark.parametrize("length", [20, 80])
def test_a_fifo_queue_stays_one_whatever_another_api_sets(sqs: Any, api: httpx.Client, length: int) -> None:
    name = "s" * (length - 5) + ".fifo"  # the longer one is cut in the other APIs
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    known = [each["queue"] for each in api.get("/api/v1/queues").json()["queues"]]
    (house_name,) = [each for each in known if each.startswith(name[:40])]
    settings = f"/api/v1/queues/{house_name}/settings"
    assert api.delete(settings).is_success
    refused = api.put(settings, json={"groupOrder": "fair"})
    assert (refused.status_code, refused.json()["field"]) == (400, "$.groupOrder")
    for body in ("a", "b"):
        send(sqs, url, body)
    assert bodies(receive(sqs, url, 1)) == ["a"]
    assert receive(sqs, url) == []
