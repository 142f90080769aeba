"""What a token may not: see, name or reach a queue that is not its own, or do what its scopes do not say."""

import json
from contextlib import nullcontext

import pytest

from forq_trio.http.errors import ForeignSite
from forq_trio.http.message import Request
from forq_trio.http.sqs_api.access import UnsignedGate

from .raw import RawClient, of_json

ARN = "arn:aws:sqs:us-east-1:000000000000:"
RECEIPT = "00000000-0001-8000-85eb-ad8c8bd6d3a9"


@pytest.fixture
def narrow(server, token, name):
    """A client with all rights for some queues. The others are `{name}-other` and `{name}-absent`."""
    scopes = ("produce", "consume", "browse", "redrive", "admin")
    client = RawClient(server.url, token(*scopes, queues=f"{name}-mine*"))
    yield client
    client.close()


def policy(target: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1})}


@pytest.mark.parametrize(
    ("operation", "members"),
    [
        ("GetQueueUrl", {"QueueName": "NAME"}),
        ("CreateQueue", {"QueueName": "NAME"}),
        ("CreateQueue", {"QueueName": "MINE-new", "Attributes": policy("ARN")}),
        ("SetQueueAttributes", {"QueueUrl": "MINE", "Attributes": policy("ARN")}),
        ("SendMessage", {"QueueUrl": "NAME", "MessageBody": "x"}),
        ("ReceiveMessage", {"QueueUrl": "NAME"}),
        ("DeleteMessage", {"QueueUrl": "NAME", "ReceiptHandle": RECEIPT}),
        ("PurgeQueue", {"QueueUrl": "NAME"}),
        ("DeleteQueue", {"QueueUrl": "NAME"}),
        ("ListQueueTags", {"QueueUrl": "NAME"}),
        ("GetQueueAttributes", {"QueueUrl": "NAME", "AttributeNames": ["All"]}),
        ("ListDeadLetterSourceQueues", {"QueueUrl": "NAME"}),
        ("ListMessageMoveTasks", {"SourceArn": "ARN"}),
        ("StartMessageMoveTask", {"SourceArn": "ARN"}),
        ("StartMessageMoveTask", {"SourceArn": "MINE-dlq", "DestinationArn": "ARN"}),
    ],
)
def test_other_queues_are_denied_whether_they_exist_or_not(sqs, narrow, name, operation, members) -> None:
    for each in ("other", "mine", "mine-dlq"):
        sqs.create_queue(QueueName=f"{name}-{each}")
    answers = set()
    for each in ("other", "absent"):
        text = (
            json.dumps(members).replace("MINE-dlq", f"{ARN}{name}-mine-dlq").replace("MINE", f"{name}-mine")
        )
        text = text.replace('"ARN', f'"{ARN}{name}-{each}').replace("NAME", f"{name}-{each}")
        answer = of_json(narrow.json(operation, text.encode()))
        answers.add(answer._replace(message=answer.message.replace(each, "")))
    (answer,) = answers
    assert answer.code == "AccessDenied"


def test_sources_and_tasks_show_no_queue_of_others(sqs, narrow, name) -> None:
    dead = f"{ARN}{name}-mine-dead"
    sqs.create_queue(QueueName=f"{name}-mine-dead")
    for each in ("other", "mine"):
        sqs.create_queue(QueueName=f"{name}-{each}", Attributes=policy(dead))
    found = narrow.json("ListDeadLetterSourceQueues", {"QueueUrl": f"{name}-mine-dead"}).json()
    assert [url.rpartition("/")[2] for url in found["queueUrls"]] == [f"{name}-mine"]
    sqs.start_message_move_task(SourceArn=dead, DestinationArn=f"{ARN}{name}-other")
    (task,) = narrow.json("ListMessageMoveTasks", {"SourceArn": dead}).json()["Results"]
    assert "DestinationArn" not in task
    assert sqs.list_message_move_tasks(SourceArn=dead)["Results"][0]["DestinationArn"] == f"{ARN}{name}-other"


def test_dead_letters_stay_in_their_region(connect, sqs, url, name) -> None:
    there = connect(region="eu-west-1")
    there.create_queue(QueueName=f"{name}-there")
    arn = f"arn:aws:sqs:eu-west-1:000000000000:{name}-there"
    with pytest.raises(sqs.exceptions.ClientError, match="does not exist"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes=policy(arn))


def test_a_queue_of_another_region_is_none_of_the_servers_own(connect, sqs, name) -> None:
    """`fifo` of the region `a` would be called `a.fifo`."""
    there = connect(region=name)
    sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})
    assert "QueueUrls" not in there.list_queues()
    with pytest.raises(there.exceptions.ClientError, match="Can only include"):
        there.create_queue(QueueName="fifo")
    with pytest.raises(there.exceptions.QueueDoesNotExist):
        there.send_message(QueueUrl="fifo", MessageBody="x")


SCOPES = {
    "SendMessage": {"produce"},
    "SendMessageBatch": {"produce"},
    "ReceiveMessage": {"consume"},
    "DeleteMessage": {"consume"},
    "DeleteMessageBatch": {"consume"},
    "ChangeMessageVisibility": {"consume"},
    "ChangeMessageVisibilityBatch": {"consume"},
    "GetQueueUrl": {"produce", "consume", "browse"},
    "GetQueueAttributes": {"produce", "consume", "browse"},
    "ListQueueTags": {"produce", "consume", "browse"},
    "ListDeadLetterSourceQueues": {"produce", "consume", "browse"},
    "ListMessageMoveTasks": {"redrive"},
    "StartMessageMoveTask": {"redrive"},
    "CreateQueue": {"produce"},
    "SetQueueAttributes": set(),
    "PurgeQueue": set(),
    "TagQueue": set(),
    "UntagQueue": set(),
    "AddPermission": set(),
    "RemovePermission": set(),
    "DeleteQueue": set(),
}
"""Who may besides `admin`. A token without the scope is refused before anything else about the request is."""


@pytest.mark.parametrize("scope", ["produce", "consume", "browse", "redrive", "admin"])
def test_what_a_scope_allows(server, token, url, name, scope) -> None:
    client = RawClient(server.url, token(scope, queues=name))
    for operation, scopes in SCOPES.items():
        members = {"QueueUrl": url, "QueueName": name, "SourceArn": f"{ARN}{name}", "Nonsense": 1}
        denied = of_json(client.json(operation, members)).code == "AccessDenied"
        assert denied is (scope not in scopes | {"admin"}), operation
    client.close()


def test_a_secret_is_shown_once(api, token, name) -> None:
    _, secret = token("produce")
    listed = api.get("/api/v1/tokens").text
    assert f"{name}-produce" in listed
    assert secret not in listed


def request(**headers: str) -> Request:
    sent = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return Request("GET", "/", "Action=PurgeQueue", sent, b"", "127.0.0.1", lambda: nullcontext())


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://elsewhere.example"},
        {"host": "elsewhere.example"},
    ],
)
def test_no_page_of_another_site_reaches_a_server_without_signatures(headers) -> None:
    gate = UnsignedGate("us-east-1")
    with pytest.raises(ForeignSite):
        gate(request(**{"host": "localhost:8080"} | headers))
    for own in (
        {},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "same-origin", "origin": "http://localhost:8080"},
    ):
        gate(request(host="localhost:8080", **own))


@pytest.mark.parametrize(
    ("glob", "allows"),
    [
        ("*", True),
        ("ap-east-1.*", True),
        ("ap-*.NAME*", True),
        ("*.NAME.fifo", True),
        ("*.*.fifo", True),
        ("a*", False),
        ("a*NAME.fifo", False),
        ("*.fifo", False),
        ("eu-*.*", False),
    ],
)
def test_a_glob_for_names_is_none_for_regions(server, token, name, glob, allows) -> None:
    client = RawClient(server.url, token("admin", queues=glob.replace("NAME", name)), "ap-east-1")
    asked = {"QueueName": f"{name}.fifo", "Attributes": {"FifoQueue": "true"}}
    answer = of_json(client.json("CreateQueue", asked))
    seen = client.json("ListQueues", {"QueueNamePrefix": f"{name}."}).json().get("QueueUrls", [])
    client.close()
    assert (answer.code, len(seen)) == (("", 1) if allows else ("AccessDenied", 0))
