"""What only clients of Amazon SQS make: messages with typed attributes, queues with tags and a policy."""

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config

from support.real_server import SECRET

PICTURE = bytes(range(256)) * 4
ATTRIBUTES = {
    "colour": {"DataType": "String", "StringValue": "grün"},
    "price": {"DataType": "Number.int", "StringValue": "-12"},
    "weight": {"DataType": "Number", "StringValue": "5.50"},
    "seal": {"DataType": "Binary", "BinaryValue": b"\x00\xff\x10"},
    "picture": {"DataType": "Binary.png", "BinaryValue": PICTURE},
}
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"
TRACED = {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}
STORED = {
    "colour": "grün",
    "price": "-12",
    "weight": "5.50",
    "seal": "AP8Q",
    "picture": b64encode(PICTURE).decode(),
}
"""The attributes as the rest of the server has them, but for the one with their types."""
POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Sid": "mail", "Effect": "Allow", "Principal": "*"}]}
)


@contextmanager
def sqs_client(url: str, key: tuple[str, str] = ("forq", SECRET), region: str = "us-east-1") -> Iterator[Any]:
    """boto3's client of a server. key: id and secret."""
    client = boto3.client(
        "sqs",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=key[0],
        aws_secret_access_key=key[1],
        config=Config(retries={"max_attempts": 0}),
    )
    try:
        yield client
    finally:
        client.close()


def fifo_queue(sqs: Any, name: str, **attributes: str) -> str:
    """The URL of a new FIFO queue that knows duplicates by their content."""
    fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    return str(sqs.create_queue(QueueName=name, Attributes=fifo | attributes)["QueueUrl"])


def send_typed(sqs: Any, url: str, body: str = "hello", **more: Any) -> str:
    """Send a message with all of ATTRIBUTES; its id."""
    sent = sqs.send_message(
        QueueUrl=url, MessageBody=body, MessageAttributes=ATTRIBUTES, MessageSystemAttributes=TRACED, **more
    )
    return str(sent["MessageId"])


def receive_all(sqs: Any, url: str) -> list[dict[str, Any]]:
    """All messages that are ready, at most ten, with all that a receive can ask for."""
    asked = {
        "MaxNumberOfMessages": 10,
        "MessageAttributeNames": ["All"],
        "MessageSystemAttributeNames": ["All"],
    }
    return list(sqs.receive_message(QueueUrl=url, **asked).get("Messages", []))
