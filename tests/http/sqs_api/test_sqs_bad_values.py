"""Values at and beyond their bounds, of wrong types, or absent: both protocols say the same, in the words of AWS."""

import json

import pytest

from .raw import Answer, of_json, of_xml, texts
from .test_sqs_queues import attributes

ARN = "arn:aws:sqs:us-east-1:000000000000:"
INVALID = "InvalidParameterValue"
RANGES = [
    ("ReceiveMessage", "MaxNumberOfMessages", 1, 10),
    ("ReceiveMessage", "VisibilityTimeout", 0, 43_200),
    ("ReceiveMessage", "WaitTimeSeconds", 0, 20),
    ("ListQueues", "MaxResults", 1, 1_000),
    ("ListDeadLetterSourceQueues", "MaxResults", 1, 1_000),
    ("ListMessageMoveTasks", "MaxResults", 1, 10),
    ("StartMessageMoveTask", "MaxNumberOfMessagesPerSecond", 1, 500),
]


@pytest.mark.parametrize(("operation", "member", "low", "high"), RANGES)
def test_numbers_beyond_their_range(sqs, raw, name, operation, member, low, high) -> None:
    sqs.create_queue(QueueName=f"{name}-dlq")
    base = {"SourceArn": f"{ARN}{name}-dlq"} if "MoveTask" in operation else {"QueueUrl": f"{name}-dlq"}
    for value in (low - 1, high + 1, -(10**17), 10**17):
        text = f"Value {value} for parameter {member} is invalid. Reason: Must be between {low} and {high},"
        found = raw.both(operation, {**base, member: value})
        assert found == Answer(400, INVALID, f"{text} if provided.")
    for value in (low, high):
        raw.json("SendMessage", {"QueueUrl": f"{name}-dlq", "MessageBody": "x"})  # so that no receive waits
        assert of_json(raw.json(operation, {**base, member: value})).code in (
            "",
            "AWS.SimpleQueueService.UnsupportedOperation",  # the task of the lowest rate runs still
        )


def test_delays_beyond_their_range(raw, url) -> None:
    for value in (-1, 901):
        text = f"Value {value} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."
        members = {"QueueUrl": url, "MessageBody": "x", "DelaySeconds": value}
        assert raw.both("SendMessage", members) == Answer(400, INVALID, text)
    for value in (0, 900):
        assert (
            raw.both("SendMessage", {"QueueUrl": url, "MessageBody": "x", "DelaySeconds": value}).status
            == 200
        )


def test_visibilities_beyond_their_range(sqs, raw, url) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    base = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
    for value in (-1, 43_201):
        text = (
            f"Value {value} for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200,"
        )
        found = raw.both("ChangeMessageVisibility", {**base, "VisibilityTimeout": value})
        assert found == Answer(400, INVALID, f"{text} if provided.")
    for post in (raw.json, raw.form):
        for value in (43_200, 0):  # after 0 it is not in flight
            assert post("ChangeMessageVisibility", {**base, "VisibilityTimeout": value}).status_code == 200
        sqs.receive_message(QueueUrl=url)


@pytest.mark.parametrize(
    ("operation", "parameter"),
    [
        ("SendMessage", "QueueUrl"),
        ("CreateQueue", "QueueName"),
        ("GetQueueUrl", "QueueName"),
        ("StartMessageMoveTask", "SourceArn"),
        ("ListMessageMoveTasks", "SourceArn"),
        ("CancelMessageMoveTask", "TaskHandle"),
        *(
            (operation, "QueueUrl")
            for operation in ("PurgeQueue", "DeleteQueue", "TagQueue", "AddPermission")
        ),
    ],
)
def test_a_member_that_is_needed(raw, operation, parameter) -> None:
    text = f"The request must contain the parameter {parameter}."
    assert raw.both(operation, {}) == Answer(400, "MissingParameter", text)


def test_a_queue_that_does_not_exist_is_said_in_the_words_of_each_protocol(raw) -> None:
    asked = {"QueueName": "absent"}
    text = "The specified queue does not exist"
    code = "AWS.SimpleQueueService.NonExistentQueue"
    assert of_json(raw.json("GetQueueUrl", asked)) == Answer(400, code, f"{text}.")
    assert of_xml(raw.form("GetQueueUrl", asked)) == Answer(400, code, f"{text} for this wsdl version.")


@pytest.mark.parametrize("value", [5, True, [], {}, 1.5])
def test_members_of_another_type(raw, value) -> None:
    for members in (
        {"QueueUrl": value},
        {"QueueUrl": "q", "Entries": 5},
        {"QueueUrl": "q", "Entries": [value]},
    ):
        answer = of_json(raw.json("SendMessageBatch", members))
        assert answer.code in ("MalformedInput", "AWS.SimpleQueueService.NonExistentQueue")
        assert answer.status == 400
    assert of_json(raw.json("SendMessageBatch", {"QueueUrl": value})).code == "MalformedInput"


@pytest.mark.parametrize("value", ["5", 5.0, True, [5]])
def test_a_number_is_no_text_and_no_fraction(raw, url, value) -> None:
    sent = raw.json("SendMessage", {"QueueUrl": url, "MessageBody": "x", "DelaySeconds": value})
    assert of_json(sent).code == "MalformedInput"


@pytest.mark.parametrize("value", ["null", "5.0", "1e2", " 5", "+5", "0x5", "٣", "", "x"])
def test_a_number_in_a_form_has_digits_alone(raw, url, value) -> None:
    sent = raw.form("SendMessage", {"QueueUrl": url, "MessageBody": "x", "DelaySeconds": value})
    assert of_xml(sent).code == "MalformedInput"


def test_null_is_absent(raw, url, name) -> None:
    nothing = dict.fromkeys(
        ("MessageAttributes", "MessageSystemAttributes", "DelaySeconds", "MessageGroupId")
    )
    assert raw.json("SendMessage", {"QueueUrl": url, "MessageBody": "x", **nothing}).status_code == 200
    nothing = dict.fromkeys(("AttributeNames", "MessageAttributeNames", "MaxNumberOfMessages"))
    assert "Messages" in raw.json("ReceiveMessage", {"QueueUrl": url, **nothing}).json()
    assert raw.json("CreateQueue", {"QueueName": name, "Attributes": None, "tags": None}).status_code == 200
    assert raw.json("ListQueues", {"QueueNamePrefix": None}).status_code == 200
    assert of_json(raw.json("SendMessage", {"QueueUrl": url, "MessageBody": None})).code == "MissingParameter"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"1",
        b"null",
        b"{",
        b"\xff",
        b'{"QueueNamePrefix":"\xff"}',
        b'{"x":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"QueueNamePrefix":"\\ud800"}',
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(10),
)
def test_bodies_that_are_no_request(raw, body) -> None:
    assert of_json(raw.json("ListQueues", body)).code == "MalformedInput"


def test_members_that_nobody_knows_are_ignored(raw) -> None:
    assert raw.json("ListQueues", {"Nonsense": [{"a": None}]}).status_code == 200
    assert raw.form("ListQueues", {"Nonsense.1.a": "b"}).status_code == 200


def test_an_unknown_operation(raw) -> None:
    assert of_json(raw.json("Nope", {})).code == of_xml(raw.form("Nope", {})).code == "InvalidAction"


@pytest.mark.parametrize(
    "count", ["0", "1001", "-1", "true", "1.5", '"1_0"', '" 5"', "1e999", '"٣"', "[]", '"5x"']
)
def test_how_many_receives_are_no_number(raw, url, name, count) -> None:
    policy = f'{{"deadLetterTargetArn": "{ARN}{name}", "maxReceiveCount": {count}}}'
    answer = of_json(
        raw.json("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"RedrivePolicy": policy}})
    )
    assert answer.code in (INVALID, "InvalidAttributeValue")


@pytest.mark.parametrize(
    "statements", ['["x"]', '"x"', "null", '[{"Sid": ["a"]}]', "5", '{"Sid": "other"}', '[[], {"Sid": 1}]']
)
def test_permissions_beside_statements_of_any_kind(sqs, raw, url, statements) -> None:
    policy = f'{{"Statement": {statements}}}'
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sqs.add_permission(QueueUrl=url, Label="mine", AWSAccountIds=["111122223333"], Actions=["*"])
    assert json.loads(attributes(sqs, url)["Policy"])["Statement"][-1]["Sid"] == "mine"
    sqs.remove_permission(QueueUrl=url, Label="mine")
    kept = json.loads(statements)
    kept = kept if isinstance(kept, list) else [kept]
    assert json.loads(attributes(sqs, url)["Policy"])["Statement"] == kept


@pytest.mark.parametrize("value", ["1" * 5_000, "1e999", "NaN", "[" * 101 + "]" * 101, "}", '"\n"'])
def test_json_that_not_every_reader_reads(raw, url, value) -> None:
    for name, text in (
        ("Policy", '{"a": %s}'),
        ("RedriveAllowPolicy", '{"redrivePermission": "allowAll", "a": %s}'),
    ):
        asked = {"QueueUrl": url, "Attributes": {name: text % value}}
        assert of_json(raw.json("SetQueueAttributes", asked)).code == "InvalidAttributeValue"


@pytest.mark.parametrize("name", ["Policy", "RedriveAllowPolicy", "KmsMasterKeyId"])
def test_the_attributes_of_a_queue_are_bounded(raw, url, name) -> None:
    fill = {"Policy": '{"a": "%s"}', "RedriveAllowPolicy": '{"redrivePermission": "allowAll", "a": "%s"}'}
    text = fill.get(name, "%s")
    longest = 8_192 - len(text) + len("%s")
    for length, status in ((longest, 200), (longest + 1, 400)):
        asked = {"QueueUrl": url, "Attributes": {name: text % ("x" * length)}}
        assert raw.json("SetQueueAttributes", asked).status_code == status


def test_permissions_are_bounded_like_a_policy(raw, url) -> None:
    asked = {"QueueUrl": url, "Label": "x", "AWSAccountIds": ["1" * 9_000], "Actions": ["*"]}
    assert of_json(raw.json("AddPermission", asked)).code == "InvalidAttributeValue"
    asked["AWSAccountIds"] = ["1"]
    for label in ("a" * 81, "a b", "é"):
        assert of_json(raw.json("AddPermission", {**asked, "Label": label})).code == INVALID


@pytest.mark.parametrize("text", ["\x00", "\x0b", "\ufffe", "\uffff"])
def test_characters_that_xml_has_not(raw, url, text) -> None:
    sent = {"QueueUrl": url, "MessageBody": "x"}
    value = {"DataType": "String", "StringValue": f"a{text}"}
    for operation, members in (
        ("TagQueue", {"QueueUrl": url, "Tags": {"a": text}}),
        ("TagQueue", {"QueueUrl": url, "Tags": {text: "a"}}),
        ("SetQueueAttributes", {"QueueUrl": url, "Attributes": {"KmsMasterKeyId": text}}),
        ("SendMessage", {**sent, "MessageBody": text}),
        ("SendMessage", {**sent, "MessageAttributes": {"a": value}}),
        (
            "SendMessage",
            {**sent, "MessageAttributes": {"a": {"DataType": f"String.{text}", "StringValue": "b"}}},
        ),
        ("SendMessage", {**sent, "MessageSystemAttributes": {"AWSTraceHeader": value}}),
    ):
        assert raw.json(operation, members).status_code == 400, (operation, members)
    for operation in ("ListQueueTags", "GetQueueAttributes", "ReceiveMessage"):
        assert of_xml(raw.form(operation, {"QueueUrl": url, "AttributeName.1": "All"})).status == 200
    assert of_xml(raw.form("CreateQueue", {"QueueName": text})).status == 400


def test_a_message_of_another_dialect_in_xml(api, raw, url, name) -> None:
    content = "<&>\r\n\x00\ufffe]]>"
    api.post(f"/api/v1/queues/{name}/messages", json={"content": content, "attributes": {"k": "\x01"}})
    answer = raw.form("ReceiveMessage", {"QueueUrl": url, "MessageAttributeName.1": "All"})
    assert texts(answer, "Body") == ["<&>\r\n\ufffd\ufffd]]>"]
    assert texts(answer, "StringValue") == ["\ufffd"]


def test_long_messages_in_xml(raw, url) -> None:
    content = "&\r" * 100_000
    for _ in range(3):
        raw.form("SendMessage", {"QueueUrl": url, "MessageBody": content})
    answer = raw.form("ReceiveMessage", {"QueueUrl": url, "MaxNumberOfMessages": 10})
    assert texts(answer, "Body") == [content] * 3


def test_eleven_attributes_are_too_many(raw, url) -> None:
    value = {"DataType": "String", "StringValue": "v"}
    for count, status in ((10, 200), (11, 400)):
        attributes = {f"n{number}": value for number in range(count)}
        sent = {"QueueUrl": url, "MessageBody": "x", "MessageAttributes": attributes}
        assert raw.json("SendMessage", sent).status_code == status
        entry = {"Id": "a", "MessageBody": "x", "MessageAttributes": attributes}
        batch = raw.json("SendMessageBatch", {"QueueUrl": url, "Entries": [entry]}).json()
        assert len(batch.get("Failed", [])) == (status == 400)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"DataType": None, "StringValue": "v"},
        {"DataType": "String"},
        {"DataType": "String", "StringValue": ""},
        {"DataType": "String", "BinaryValue": "AAAA"},
        {"DataType": "String", "StringValue": "v", "BinaryValue": "AAAA"},
        {"DataType": "Binary", "StringValue": "v", "BinaryValue": "AAAA"},
        {"DataType": "Binary", "BinaryValue": "A"},
        {"DataType": "Number", "StringValue": "5x"},
        {"DataType": "Odd", "StringValue": "v"},
    ],
)
def test_values_of_attributes_that_are_refused(raw, url, value) -> None:
    sent = {"QueueUrl": url, "MessageBody": "x", "MessageAttributes": {"a": value}}
    assert raw.json("SendMessage", sent).status_code == 400


def test_the_trace_header_is_bounded(raw, url) -> None:
    for length, status in ((1_024, 200), (1_025, 400)):
        trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "x" * length}}
        sent = {"QueueUrl": url, "MessageBody": "x", "MessageSystemAttributes": trace}
        assert raw.json("SendMessage", sent).status_code == status


def test_a_batch_of_one_byte_too_many(raw, url) -> None:
    half = 512 * 1024
    for more, status in ((0, 200), (1, 400)):
        entries = [{"Id": "a", "MessageBody": "x" * half}, {"Id": "b", "MessageBody": "x" * (half + more)}]
        answer = raw.json("SendMessageBatch", {"QueueUrl": url, "Entries": entries})
        assert answer.status_code == status
    assert "You have sent 1048577 bytes." in of_json(answer).message
