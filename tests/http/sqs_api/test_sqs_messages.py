"""Messages through boto3: sent, received, deleted, delayed, in batches."""

import threading
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError

from forq_trio.http.sqs_api.digests import md5_of_attributes
from forq_trio.http.sqs_api.shapes import AttributeValue
from support.processes import WAIT_SECONDS_MAX


def receive(sqs: Any, url: str, most: int = 10, **more: Any) -> list[dict[str, Any]]:
    return list(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=most, **more).get("Messages", []))


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [each["Body"] for each in messages]


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_message_is_sent_received_and_deleted(sqs, url) -> None:
    sent = sqs.send_message(QueueUrl=url, MessageBody="hello")
    (message,) = receive(sqs, url)
    assert (message["Body"], message["MessageId"]) == ("hello", sent["MessageId"])
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert receive(sqs, url) == []
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])  # again: nothing happens


def test_nothing_is_absent_and_not_empty(sqs, url) -> None:
    assert "Messages" not in sqs.receive_message(QueueUrl=url)


def test_attributes_of_all_types_come_back_with_their_digest(sqs, url) -> None:
    attributes = {
        "color": {"DataType": "String", "StringValue": "grün"},
        "count": {"DataType": "Number", "StringValue": "5.50"},
        "own": {"DataType": "Number.int", "StringValue": "-1"},
        "blob": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    (message,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert message["MessageAttributes"] == attributes
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["a.b"], ["a.b"]),
        (["a.*"], ["a.b", "a.c"]),
        ([".*"], ["a.b", "a.c", "d"]),
        (["All"], ["a.b", "a.c", "d"]),
        (["ALL"], ["a.b", "a.c", "d"]),
        (["nothing"], []),
        ([], []),
    ],
)
def test_only_the_attributes_that_were_asked_for_are_returned(sqs, url, wanted, found) -> None:
    value = {"DataType": "String", "StringValue": "v"}
    sqs.send_message(
        QueueUrl=url, MessageBody="x", MessageAttributes=dict.fromkeys(["a.b", "a.c", "d"], value)
    )
    (message,) = receive(sqs, url, MessageAttributeNames=wanted)
    assert sorted(message.get("MessageAttributes", {})) == found
    digest = md5_of_attributes({name: AttributeValue("String", "v") for name in found}) if found else None
    assert message.get("MD5OfMessageAttributes") == digest


@pytest.mark.parametrize("wanted", ["All", "ALL"])  # kombu has capitals, which Amazon takes, too
def test_attributes_of_the_system(sqs, url, wanted) -> None:
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"}}
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageSystemAttributes=trace)
    (message,) = receive(sqs, url, MessageSystemAttributeNames=[wanted])
    found = message["Attributes"]
    assert found["ApproximateReceiveCount"] == "1"
    assert found["AWSTraceHeader"] == "Root=1-5759e988"
    assert int(found["SentTimestamp"]) <= int(found["ApproximateFirstReceiveTimestamp"])
    assert {"SequenceNumber", "MessageGroupId", "MessageDeduplicationId"}.isdisjoint(found)


def test_a_delay_hides_a_message(sqs, url) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=900)
    assert receive(sqs, url) == []
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesDelayed"] == "1"
    assert counts["ApproximateNumberOfMessages"] == counts["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_a_visibility_of_zero_gives_the_message_back(sqs, url) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (first,) = receive(sqs, url)
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
    (second,) = receive(sqs, url, AttributeNames=["ApproximateReceiveCount"])
    assert second["Attributes"] == {"ApproximateReceiveCount": "2"}


def test_an_old_receipt_deletes_the_message(sqs, url) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (first,) = receive(sqs, url, VisibilityTimeout=0)
    (second,) = receive(sqs, url)
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "0"


@pytest.mark.parametrize("seconds", [0, 100])
def test_the_visibility_of_a_visible_message_does_not_change(sqs, url, seconds) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = receive(sqs, url, VisibilityTimeout=0)
    with pytest.raises(sqs.exceptions.MessageNotInflight, match="isn't in flight") as error:
        sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )
    assert code(error) == "AWS.SimpleQueueService.MessageNotInflight"
    assert bodies(receive(sqs, url)) == ["x"]


def test_visibilities_in_a_batch_change_one_by_one(sqs, url) -> None:
    for body in ("hidden", "back", "gone", "visible"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    hidden, back, gone = receive(sqs, url, 3)
    (visible,) = receive(sqs, url, VisibilityTimeout=0)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=gone["ReceiptHandle"])
    entries = [
        {"Id": each["Body"], "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": seconds}
        for each, seconds in ((hidden, 5), (back, 0), (gone, 5), (visible, 6))
    ]
    done = sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
    assert [each["Id"] for each in done["Successful"]] == ["hidden", "back"]
    assert {each["Id"]: each["Code"] for each in done["Failed"]} == {
        "gone": "InvalidParameterValue",
        "visible": "AWS.SimpleQueueService.MessageNotInflight",
    }


def test_a_batch_answers_each_entry(sqs, url) -> None:
    entries = [{"Id": str(n), "MessageBody": f"m{n}"} for n in range(9)] + [
        {"Id": "bad", "MessageBody": "\x00"}
    ]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert [each["Id"] for each in sent["Successful"]] == [str(n) for n in range(9)]
    assert [(each["Id"], each["Code"], each["SenderFault"]) for each in sent["Failed"]] == [
        ("bad", "InvalidMessageContents", True)
    ]
    messages = receive(sqs, url)
    assert sorted(bodies(messages)) == [f"m{n}" for n in range(9)]
    handles = [{"Id": str(n), "ReceiptHandle": each["ReceiptHandle"]} for n, each in enumerate(messages)]
    done = sqs.delete_message_batch(QueueUrl=url, Entries=handles)
    assert len(done["Successful"]) == 9
    assert "Failed" not in done


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"Id": str(n), "MessageBody": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "a", "MessageBody": "x"}] * 2, "BatchEntryIdsNotDistinct"),
        ([{"Id": "no blank", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "MessageBody": "x" * 600_000} for n in range(2)], "BatchRequestTooLong"),
    ],
)
def test_batches_that_are_refused_whole(sqs, url, entries, expected) -> None:
    with pytest.raises(ClientError) as error:
        sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert code(error) == f"AWS.SimpleQueueService.{expected}"


def test_a_message_may_have_a_mebibyte(sqs, url) -> None:
    body = "é" * (1024 * 512)
    sqs.send_message(QueueUrl=url, MessageBody=body)
    (message,) = receive(sqs, url)
    assert message["Body"] == body
    with pytest.raises(ClientError, match="Message must be shorter than 1048576 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody=body + "x")


def test_a_long_poll_gets_what_is_sent_meanwhile(sqs, connect, url) -> None:
    found: list[str] = []
    waiting = threading.Thread(
        target=lambda: found.extend(bodies(receive(connect(), url, WaitTimeSeconds=20)))
    )
    waiting.start()
    sqs.send_message(QueueUrl=url, MessageBody="now")
    waiting.join(WAIT_SECONDS_MAX)
    assert found == ["now"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"MaxNumberOfMessages": 11}, "Value 11 for parameter MaxNumberOfMessages is invalid"),
        ({"MaxNumberOfMessages": 0}, "Value 0 for parameter MaxNumberOfMessages is invalid"),
        ({"WaitTimeSeconds": 21}, "Value 21 for parameter WaitTimeSeconds is invalid"),
        ({"VisibilityTimeout": 43_201}, "Value 43201 for parameter VisibilityTimeout is invalid"),
        ({"AttributeNames": ["Nonsense"]}, "Unknown Attribute Nonsense"),
    ],
)
def test_receives_that_are_refused(sqs, url, parameters, message) -> None:
    with pytest.raises(ClientError, match=message):
        sqs.receive_message(QueueUrl=url, **parameters)


def test_a_receipt_that_is_none(sqs, url) -> None:
    with pytest.raises(
        sqs.exceptions.ReceiptHandleIsInvalid, match='"garbage" is not a valid receipt handle'
    ):
        sqs.delete_message(QueueUrl=url, ReceiptHandle="garbage")


def test_each_answer_has_an_id_of_its_own(sqs: Any) -> None:
    ids = [sqs.list_queues()["ResponseMetadata"]["RequestId"] for _ in range(2)]
    assert [str(UUID(each)) for each in ids] == ids
    assert ids[0] != ids[1]
