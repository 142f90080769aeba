"""What the load generator says to servers of SQS, and what it reads from them."""

from contextlib import nullcontext
from hashlib import sha256
from time import time

import pytest

from bench.load.generator import Address
from bench.load.sqs import Received, SqsApi, received
from forq_trio.http.message import Request
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.signature import check_signature, check_time, signature_of

API = SqsApi(Address("127.0.0.1", 9), ("AK", "secret"))
MESSAGE = Received("handle", "hello")


def request_of(raw: bytes) -> Request:
    """The request as the server gets it."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, path, _ = first.decode().split()
    pairs = [line.partition(b": ") for line in lines]
    headers = {name.lower(): value for name, _, value in pairs}
    assert int(headers[b"content-length"]) == len(body)
    return Request(method, path, "", headers, body, "127.0.0.1", lambda: nullcontext())


@pytest.mark.parametrize(
    ("made", "operation", "body"),
    [
        (lambda: API.send("q", "grün"), "SendMessage", '{"QueueUrl":"q","MessageBody":"grün"}'),
        (
            lambda: API.send_batch("q", ["a", "b"]),
            "SendMessageBatch",
            '{"QueueUrl":"q","Entries":[{"Id":"0","MessageBody":"a"},{"Id":"1","MessageBody":"b"}]}',
        ),
        (
            lambda: API.receive("q", 10),
            "ReceiveMessage",
            '{"QueueUrl":"q","MaxNumberOfMessages":10,"WaitTimeSeconds":20}',
        ),
        (lambda: API.delete("q", MESSAGE), "DeleteMessage", '{"QueueUrl":"q","ReceiptHandle":"handle"}'),
        (
            lambda: API.delete_batch("q", [MESSAGE]),
            "DeleteMessageBatch",
            '{"QueueUrl":"q","Entries":[{"Id":"0","ReceiptHandle":"handle"}]}',
        ),
    ],
)
def test_a_request_is_what_it_is_for_and_is_signed(made, operation, body):
    request = request_of(made())  # made now: a signature is too old after 15 minutes
    assert request.headers[b"x-amz-target"] == f"AmazonSQS.{operation}".encode()
    assert request.body.decode() == body
    signature, body_hash = signature_of(request), sha256(request.body).hexdigest()
    check_time(signature, time())
    check_signature(request, body_hash, signature, "secret")
    with pytest.raises(SqsError, match="does not match"):
        check_signature(request, body_hash, signature, "another")


def test_an_answer_has_messages_or_none():
    assert received(b"{}") == []
    assert received(b'{"Messages":[{"MessageId":"1","ReceiptHandle":"handle","Body":"hello"}]}') == [MESSAGE]
