"""What would take long to read, or much memory to keep, is refused before it does."""

import random
import socket
import xml.etree.ElementTree as ET
from urllib.parse import quote_plus, unquote_plus

import httpx
import pytest
import trio
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from forq_trio.http.errors import LockedOut
from forq_trio.http.sqs_api.access import UnsignedGate
from forq_trio.http.sqs_api.attempts import Attempts
from forq_trio.http.sqs_api.details import DetailChanges
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.explain import explain
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.query_protocol import QueryProtocol
from forq_trio.http.sqs_api.service import SqsService
from forq_trio.http.sqs_api.shapes import AttributeValue, ReceivedAnswer, SendMessageRequest, SqsMessage
from forq_trio.model import limits
from forq_trio.model.holders import HOLDER, OWNER, Holder, HolderKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import SettingsChange
from support.real_server import RealServer

from .conftest import ROOT_KEY
from .in_process import ACCOUNT, memory_system, request_of
from .raw import NAMESPACE, of_json, of_xml

TOKENS = [Holder(HolderKind.TOKEN, name) for name in ("greedy", "modest")]


@pytest.mark.parametrize(
    ("operation", "body"),
    [
        ("SendMessageBatch", b'{"Entries":[' + b"{}," * 100_000 + b"{}]}"),
        ("SendMessageBatch", b'{"Entries":[{"MessageAttributes":{' + b'"a":{},' * 20_000 + b'"b":{}}}]}'),
        ("SendMessage", b'{"MessageSystemAttributes":{' + b'"a\\\\":{},' * 20_000 + b'"b":{}}}'),
        ("ReceiveMessage", b'{"MessageAttributeNames":[' + b'"a.*",' * 20_000 + b'"b"]}'),
        ("UntagQueue", b'{"TagKeys":[' + b'"a",' * 20_000 + b'"b"]}'),
        ("TagQueue", b'{"Tags":{' + b'"a" : "",' * 20_000 + b'"b":""}}'),
    ],
    ids=["entries", "attributes", "backslashes", "names", "keys", "tags"],
)
def test_very_many_values(raw, operation, body) -> None:
    assert of_json(raw.json(operation, body)).code == "MalformedInput"


def test_a_long_batch_of_too_many_entries_is_counted(raw, url) -> None:
    entries = [{"Id": str(number), "MessageBody": "x" * 6_000} for number in range(20)]
    answer = of_json(raw.json("SendMessageBatch", {"QueueUrl": url, "Entries": entries}))
    assert answer.message == "Maximum number of entries per request are 10. You have sent 20."


def test_a_long_text_full_of_quotes_is_one_value(raw, url) -> None:
    body = '"":{},' * 40_000
    assert raw.json("SendMessage", {"QueueUrl": url, "MessageBody": body}).status_code == 200
    assert raw.json("ReceiveMessage", {"QueueUrl": url}).json()["Messages"][0]["Body"] == body


def read_form(body: bytes) -> str | None:
    """The body of the message in a form."""
    _, asked = QueryProtocol.read(request_of(b"Action=SendMessage&MessageBody=" + body))
    assert isinstance(asked, SendMessageRequest)
    return asked.message_body


def test_forms_are_read_as_by_other_readers() -> None:
    draw = random.Random(40)
    parts = ["%41", "%3d", "%0D", "%0a", "%C3%A9", "=", "+", " ", "\r", "\n", "a", "é", ".", "%2B", "%25"]
    for _ in range(1_000):
        text = "".join(draw.choices(parts, k=draw.randrange(8)))
        assert read_form(text.encode()) == unquote_plus(text, errors="strict")
    everything = "".join(map(chr, range(0x250)))
    assert read_form(quote_plus(everything).encode()) == everything


NO_FORMS = [
    b"%",
    b"%4",
    b"%zz",
    b"%%41",
    b"%\n",
    b"%\r\n",
    b"\rab\n%zz",
    b"%=41",
    b"%ff",
    b"\xff",
    b"=" * 200_000,
]


def test_forms_that_are_none() -> None:
    for body in NO_FORMS:
        with pytest.raises(SqsError, match="The request is no form"):
            read_form(body)


def test_forms_of_very_many_fields(raw) -> None:
    for fields in (b"a=1&" * 1_001, b"&" * 100_000):
        assert of_xml(raw.form("ListQueues", fields)).code == "MalformedInput"
    assert of_xml(raw.form("ListQueues", b"a" + b".a" * 100_000 + b"=1")).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        b"QueueUrl=q&QueueUrl.x=1",
        b"QueueUrl=q&Tag.1.Key.x=1&Tag.1.Value=1",
        b"QueueUrl=q&Tag.1.Key=a&Tag.1.Value.x=1",
        b"QueueUrl.x=q&Tag.1.Key=a&Tag.1.Value=1",
    ],
)
def test_fields_inside_of_others(raw, fields) -> None:
    assert of_xml(raw.form("TagQueue", fields)).code == "MalformedInput"


def test_numbered_fields_are_in_their_order_and_odd_numbers_are_left_out(sqs, raw, name) -> None:
    fields = {f"Attribute.{number}.Name": "DelaySeconds" for number in (2, 10, 9)}
    fields |= {f"Attribute.{number}.Value": str(number) for number in (2, 10, 9)}
    for odd in ("01", "-1", "1" * 5_000, "٣", "x", ""):
        fields |= {f"Attribute.{odd}.Name": "Nonsense", f"Attribute.{odd}.Value": "1"}
    assert of_xml(raw.form("CreateQueue", {"QueueName": name, **fields})).status == 200
    found = sqs.get_queue_attributes(QueueUrl=name, AttributeNames=["DelaySeconds"])
    assert found["Attributes"] == {"DelaySeconds": "10"}


def test_a_url_that_is_too_long_to_be_split(raw, url, name) -> None:
    for length, status in ((1_000, 200), (3_000, 400)):
        asked = {"QueueUrl": f"http://x/{'y' * length}/{name}", "MessageBody": "x"}
        assert raw.json("SendMessage", asked).status_code == status


class Socket:
    """Requests whose headers are sent as they are given."""

    def __init__(self, server: RealServer) -> None:
        self._server = server

    def post(self, body: bytes, *headers: bytes) -> bytes:
        host, _, port = self._server.address.rpartition(":")
        lines = [
            b"POST / HTTP/1.1",
            *headers,
            b"Content-Length: %d" % len(body),
            b"Connection: close",
            b"",
            body,
        ]
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"\r\n".join(lines))
            answer = b""
            while received := connection.recv(65_536):
                answer += received
        return answer

    def signed(self, host: str, body: bytes, *more: bytes) -> bytes:
        headers = {"X-Amz-Target": "AmazonSQS.GetQueueUrl", "Host": host}
        request = AWSRequest("POST", "http://localhost/", data=body, headers=headers)
        SigV4Auth(Credentials(*ROOT_KEY), "sqs", "us-east-1").add_auth(request)
        return self.post(
            body, *(f"{name}: {value}".encode() for name, value in request.headers.items()), *more
        )


@pytest.mark.parametrize(
    "host", ["a<b>", 'a"b', "a&b", "a b", "a/../b", "a@b", "a:b", "a:123456", "[::1", "", "a" * 254]
)
def test_a_host_that_is_none_gets_into_no_url(server, url, name, host) -> None:
    answer = Socket(server).signed(host, b'{"QueueName": "%s"}' % name.encode())
    assert answer.split()[1] == b"400"
    assert b"QueueUrl" not in answer


@pytest.mark.parametrize("host", ["localhost", "sqs.example:443", "127.0.0.1:1", "[::1]:8080", "my_host"])
def test_urls_begin_with_the_host(server, url, name, host) -> None:
    answer = Socket(server).signed(host, b'{"QueueName": "%s"}' % name.encode())
    assert f'"http://{host}/000000000000/{name}"'.encode() in answer


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Authorization: AWS4-HMAC-SHA256 x", b"403"),
        (b"X-Amz-Target: AmazonSQS.DeleteQueue", b"403"),
        (b"X-Amz-Date: 20260101T000000Z", b"403"),
        (b"Host: elsewhere", b"400"),
        (b"X-Amz-Content-Sha256: UNSIGNED-PAYLOAD", b"403"),
    ],
)
def test_headers_that_are_repeated_or_not_signed(server, url, name, header, status) -> None:
    answer = Socket(server).signed("localhost", b'{"QueueName": "%s"}' % name.encode(), header)
    assert answer.split()[1] == status
    assert b"QueueUrl" not in answer


def test_who_is_locked_out_is_told_for_how_long() -> None:
    error = explain(LockedOut(59.9))
    assert "A right one passes" in error.message
    assert (error.shape.status, error.headers) == (403, ((b"retry-after", b"60"),))
    assert "59" not in error.message


def test_a_presigned_url_with_characters_that_no_signature_has(server, raw) -> None:
    raw.json("ListQueues", {})  # a right signature: the address is not locked out
    query = "Action=ListQueues&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60"
    credential = "X-Amz-Credential=forq/20260101/us-east-1/sqs/aws4_request"
    for odd in (
        "X-Amz-SignedHeaders=host&X-Amz-Signature=%C3%A9",
        "X-Amz-SignedHeaders=%C3%A9&X-Amz-Signature=0",
    ):
        answer = of_xml(httpx.get(f"{server.url}/?{query}&{credential}&{odd}", verify=False))
        assert answer.code == "IncompleteSignature"


async def test_a_token_makes_only_its_own_attempts_be_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_ATTEMPTS_BYTES_MAX", 10_000)
    async with memory_system() as system:
        attempts = Attempts(system.broker)
        greedy, modest = TOKENS

        async def receive(holder: Holder, attempt: str, **message) -> list:
            HOLDER.set(holder)
            await system.broker.produce("q", "x", **message)
            found = await system.broker.receive("q", wait_ms=0)
            attempts.note("q", attempt, found)
            return found

        async def again(attempt: str) -> list[str]:
            return [each.receipt for each in await attempts.again("q", attempt, None) or ()]

        (first,) = await receive(modest, "first")
        for number in range(20):
            (latest,) = await receive(greedy, f"{number}", attributes={"a": "y" * 1_000})
        assert await again("0") == []
        assert await again("19") == [latest.receipt]
        assert await again("first") == []  # an attempt of another token
        HOLDER.set(modest)
        assert await again("first") == [first.receipt]


async def test_long_details_share_a_bound(autojump_clock, monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 30_000)
    async with memory_system() as system:
        changes = DetailChanges(system.broker)

        async def store(name: str, length: int, holder: Holder = OWNER) -> None:
            HOLDER.set(holder)
            queue = SqsQueue(name, ACCOUNT.region, ACCOUNT)
            await changes.store(queue, attributes={"Policy": "x" * length})

        async def refused(name: str, length: int, holder: Holder = OWNER) -> None:
            with pytest.raises(SqsError, match="too long together"):
                await store(name, length, holder)

        greedy, modest = TOKENS
        await store("a", 9_000, greedy)
        await store("b", 9_000, greedy)
        await refused("c", 9_000, greedy)  # its share is two thirds
        await store("c", 500, greedy)  # short ones are free
        await store("d", 7_000, modest)
        await refused("e", 9_000)
        await store("a", 2_000, greedy)
        await store("e", 9_000)
        await refused("f", 9_000)
        HOLDER.set(OWNER)
        await system.broker.delete_queue("b")
        await store("f", 9_000)
        again = DetailChanges(system.broker)  # a server that starts counts what there is
        queue = SqsQueue("g", ACCOUNT.region, ACCOUNT)
        with pytest.raises(SqsError, match="too long together"):
            await again.store(queue, attributes={"Policy": "x" * 9_000})


async def test_details_that_are_not_stored_charge_nobody(monkeypatch) -> None:
    monkeypatch.setattr(limits, "SQS_LONG_DETAILS_BYTES_MAX", 30_000)
    async with memory_system() as system:
        changes = DetailChanges(system.broker)
        greedy, modest = TOKENS

        async def store(name: str, length: int, holder: Holder, change: SettingsChange) -> None:
            HOLDER.set(holder)
            queue = SqsQueue(name, ACCOUNT.region, ACCOUNT)
            await changes.store(queue, change, attributes={"Policy": "x" * length})

        await store("a", 9_000, modest, SettingsChange())
        with pytest.raises(SqsError, match="too long together"):
            await store("a", 25_000, greedy, SettingsChange())
        for name in ("a", "c"):
            with pytest.raises(SqsError, match="it must be another queue"):
                await store(name, 10_000, greedy, SettingsChange(dead_letter_queue=name))
        await store("b", 13_000, greedy, SettingsChange())  # no more than that: its share is two thirds


@pytest.mark.parametrize("path", ["/", "/000000000000/q"])
def test_a_body_that_the_server_does_not_take_is_answered_as_sqs_does(server, path) -> None:
    body = b"x" * (limits.BODY_BYTES_MAX + 1)
    answer = (413, "RequestEntityTooLarge", "The request is longer than the server takes.")
    json = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"}
    with httpx.Client(base_url=server.url, verify=False) as client:
        assert of_json(client.post(path, content=body, headers=json)) == answer
        assert of_xml(client.post(path, content=body)) == answer
        assert client.post("/api/v1/queues/q/messages", content=body).json()["code"].startswith("bad_request")


class Turns:
    """Counts how often other tasks have their turn."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


async def test_xml_of_long_messages_is_made_in_slices() -> None:
    body = "&" * (limits.SQS_MESSAGE_BYTES_MAX - 1) + "\r"
    async with memory_system() as system, trio.open_nursery() as nursery:
        service = SqsService(system.broker, UnsignedGate("us-east-1"), ACCOUNT, None)
        for _ in range(2):
            await system.broker.store_message("q", NewMessage(body))
        turns = Turns()
        nursery.start_soon(turns.take)
        asked = b"Action=ReceiveMessage&QueueUrl=q&MaxNumberOfMessages=2"
        answer = await service.respond(request_of(asked))
        nursery.cancel_scope.cancel()
    found = [each.text for each in ET.fromstring(answer.body).iter(f"{NAMESPACE}Body")]
    assert found == [body, body]
    assert turns.count > len(answer.body) / (3 * limits.READ_SLICE_BYTES)


def test_no_part_of_an_answer_in_xml_is_long() -> None:
    odd = "&\r\0\N{GRINNING FACE}" * 300_000
    message = SqsMessage("id", "receipt", "md5", odd, {}, None, {"a": AttributeValue("String", odd)})
    parts = list(QueryProtocol.parts("ReceiveMessage", ReceivedAnswer([message]), "id"))
    assert max(map(len, parts)) < 2 * limits.READ_SLICE_BYTES
    whole = ET.fromstring(b"".join(parts))
    shown = odd.replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert [whole.findtext(f".//{NAMESPACE}{name}") for name in ("Body", "StringValue")] == [shown, shown]
