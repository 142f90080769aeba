"""Queues through boto3: made, found, listed, changed, tagged, purged, deleted."""

import json
import time
from typing import Any

import httpx
import pytest
import trio
from botocore.exceptions import ClientError

from forq_trio.http.sqs_api.attributes import COUNTS
from forq_trio.http.sqs_api.details import DetailChanges
from forq_trio.http.sqs_api.errors import SqsError
from forq_trio.http.sqs_api.queues import SqsQueues
from forq_trio.http.sqs_api.shapes import (
    AddPermissionRequest,
    GetQueueUrlRequest,
    ListQueuesRequest,
    QueueUrlRequest,
)
from forq_trio.http.sqs_api.tags import SqsTags
from forq_trio.model import limits
from forq_trio.model.errors import StorageLost
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.sqs.policies import labels_of
from support.processes import WAIT_SECONDS_MAX

from .in_process import caller_with_all_rights, memory_system
from .test_sqs_messages import bodies, code, receive


def attributes(sqs: Any, url: str, *names: str) -> dict[str, str]:
    return dict(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names or ["All"]).get("Attributes", {}))


def test_a_new_queue_has_the_defaults_of_sqs(sqs, url, name) -> None:
    found = attributes(sqs, url)
    assert found["QueueArn"] == f"arn:aws:sqs:us-east-1:000000000000:{name}"
    wanted = {
        "DelaySeconds": "0",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "ReceiveMessageWaitTimeSeconds": "0",
        "VisibilityTimeout": "30",
        "SqsManagedSseEnabled": "true",
    }
    assert {name: found[name] for name in wanted} == wanted
    assert "RedrivePolicy" not in found
    assert url.endswith(f"/000000000000/{name}")


def test_only_the_attributes_that_were_asked_for_come(sqs, url) -> None:
    assert attributes(sqs, url, "VisibilityTimeout") == {"VisibilityTimeout": "30"}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=url)


def test_making_a_queue_again_finds_it_unless_an_attribute_differs(sqs, url, name) -> None:
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "30"})["QueueUrl"] == url
    with pytest.raises(
        sqs.exceptions.QueueNameExists, match="different value for attribute VisibilityTimeout"
    ):
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "31"})


@pytest.mark.parametrize(
    ("attribute", "first", "same", "other"),
    [
        ("VisibilityTimeout", "30", "030", "31"),
        ("Policy", '{"a": 1, "b": [2]}', '{"b":[2],"a":1}', '{"a": 1}'),
        (
            "RedriveAllowPolicy",
            '{"redrivePermission": "byQueue", "sourceQueueArns": ["ARN"]}',
            '{"sourceQueueArns":["ARN"],"redrivePermission":"byQueue"}',
            '{"redrivePermission": "denyAll"}',
        ),
        ("KmsMasterKeyId", "a", "a", "b"),
        ("Policy", "{}", "{}", ""),
    ],
)
def test_values_are_the_same_however_they_are_written(sqs, url, name, attribute, first, same, other) -> None:
    arn = attributes(sqs, url)["QueueArn"]
    first, same, other = (text.replace("ARN", arn) for text in (first, same, other))
    made = sqs.create_queue(QueueName=f"{name}-again", Attributes={attribute: first})["QueueUrl"]
    assert sqs.create_queue(QueueName=f"{name}-again", Attributes={attribute: same})["QueueUrl"] == made
    with pytest.raises(sqs.exceptions.QueueNameExists, match=f"different value for attribute {attribute}"):
        sqs.create_queue(QueueName=f"{name}-again", Attributes={attribute: other})


def test_the_order_of_a_queue_does_not_depend_on_its_name(sqs, name) -> None:
    url = sqs.create_queue(QueueName=f"{name}_lifo")["QueueUrl"]
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    assert bodies(receive(sqs, url)) == ["a", "b"]


def test_attributes_change(sqs, url) -> None:
    sqs.set_queue_attributes(
        QueueUrl=url, Attributes={"VisibilityTimeout": "0", "MaximumMessageSize": "1024"}
    )
    assert attributes(sqs, url, "VisibilityTimeout", "MaximumMessageSize") == {
        "VisibilityTimeout": "0",
        "MaximumMessageSize": "1024",
    }
    with pytest.raises(ClientError, match="Message must be shorter than 1024 bytes"):
        sqs.send_message(QueueUrl=url, MessageBody="x" * 1025)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("DelaySeconds", 0, 900),
        ("MaximumMessageSize", 1_024, 1_048_576),
        ("MessageRetentionPeriod", 60, 1_209_600),
        ("ReceiveMessageWaitTimeSeconds", 0, 20),
        ("VisibilityTimeout", 0, 43_200),
        ("KmsDataKeyReusePeriodSeconds", 60, 86_400),
    ],
)
def test_the_ranges_of_numbers(sqs, url, name, low, high) -> None:
    for value in (low, high):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: str(value)})
        assert attributes(sqs, url, name) == {name: str(value)}
    for value in (low - 1, high + 1, "x", ""):
        with pytest.raises(ClientError, match=f"Invalid value for the parameter {name}"):
            sqs.set_queue_attributes(QueueUrl=url, Attributes={name: str(value)})


def test_an_unknown_attribute(sqs, url) -> None:
    for wanted in ("Nonsense", "QueueArn", "ContentBasedDeduplication"):
        with pytest.raises(ClientError, match=f"Unknown Attribute {wanted}"):
            sqs.set_queue_attributes(QueueUrl=url, Attributes={wanted: "true"})


def test_what_does_not_exist(sqs, url) -> None:
    with pytest.raises(sqs.exceptions.QueueDoesNotExist) as error:
        sqs.send_message(QueueUrl=f"{url}-not", MessageBody="x")
    assert code(error) == "AWS.SimpleQueueService.NonExistentQueue"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName="not")


@pytest.mark.parametrize("name", ["", "a.b", "a" * 81, "a b", ".fifo", "é"])
def test_names_that_no_queue_has(sqs, name) -> None:
    with pytest.raises(ClientError) as error:
        sqs.create_queue(QueueName=name)
    assert code(error) in ("InvalidParameterValue", "MissingParameter")


def test_the_longest_name(sqs) -> None:
    name = "n" * 80
    assert sqs.create_queue(QueueName=name)["QueueUrl"].endswith(name)


def test_a_queue_is_found_by_name_by_url_and_by_the_url_of_another_host(sqs, url, name) -> None:
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    for each in (name, f"https://sqs.us-east-1.amazonaws.com/000000000000/{name}"):
        sqs.send_message(QueueUrl=each, MessageBody="x")
    assert len(receive(sqs, url)) == 2


def test_lists_have_pages(connect) -> None:
    sqs = connect(region="ap-south-1")
    assert "QueueUrls" not in sqs.list_queues()
    for number in range(5):
        sqs.create_queue(QueueName=f"page-{number}")
    pages = sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 2})
    names = [url.rpartition("/")[2] for page in pages for url in page.get("QueueUrls", [])]
    assert names == [f"page-{number}" for number in range(5)]
    found = sqs.list_queues(QueueNamePrefix="page-3")
    assert [url.rpartition("/")[2] for url in found["QueueUrls"]] == ["page-3"]
    assert "NextToken" not in found


async def test_a_queue_that_no_operation_finds_is_in_no_list() -> None:
    """In the other APIs a dead-letter queue may have a longer name than any other; SQS names none by it."""
    long = "x" * limits.QUEUE_NAME_LENGTH_MAX
    async with memory_system() as system:
        await system.broker.produce_across([(long, NewMessage("x")), (f"{long}-dlq", NewMessage("x"))])
        queues, caller = SqsQueues(system.broker, DetailChanges(system.broker)), caller_with_all_rights()
        (url,) = (await queues.queues(caller, ListQueuesRequest())).queue_urls
        assert url.endswith(f"/{long}")
        with pytest.raises(SqsError, match="does not exist"):
            await queues.url(caller, GetQueueUrlRequest(f"{long}-dlq"))


def test_a_region_does_not_see_the_queues_of_another(connect, url, name) -> None:
    there = connect(region="eu-west-1")
    with pytest.raises(there.exceptions.QueueDoesNotExist):
        there.send_message(QueueUrl=url, MessageBody="x")
    there.create_queue(QueueName=name)
    there.send_message(QueueUrl=name, MessageBody="there")
    assert receive(connect(), url) == []
    assert bodies(receive(there, name)) == ["there"]


def test_producers_of_sqs_and_consumers_of_the_rest_api_meet(sqs, api, url, name) -> None:
    sqs.send_message(
        QueueUrl=url, MessageBody="hello", MessageAttributes={"n": {"DataType": "Number", "StringValue": "5"}}
    )
    (message,) = api.post(f"/api/v1/queues/{name}/messages/receive", json={"max": 1}).json()["messages"]
    assert (message["content"], message["attributes"]["n"]) == ("hello", "5")
    api.post(f"/api/v1/queues/{name}/messages", json={"content": "back", "attributes": {"a": "b"}})
    (back,) = receive(sqs, url, MessageAttributeNames=["All"])
    assert back["Body"] == "back"
    assert back["MessageAttributes"] == {"a": {"DataType": "String", "StringValue": "b"}}


def test_tags(sqs, name) -> None:
    url = sqs.create_queue(QueueName=name, tags={"team": "blue"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"cost": "1", "team": "red"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "1", "team": "red"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["cost", "absent"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "red"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team"])
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=url)
    with pytest.raises(ClientError, match="Too many tags"):
        sqs.tag_queue(QueueUrl=url, Tags={str(n): "" for n in range(51)})


def test_permissions_are_stored_as_a_policy(sqs, url) -> None:
    sqs.add_permission(QueueUrl=url, Label="all", AWSAccountIds=["111122223333"], Actions=["SendMessage"])
    policy = json.loads(attributes(sqs, url)["Policy"])
    assert policy["Statement"][0]["Action"] == "SQS:SendMessage"
    with pytest.raises(ClientError, match="Already exists"):
        sqs.add_permission(QueueUrl=url, Label="all", AWSAccountIds=["111122223333"], Actions=["*"])
    sqs.remove_permission(QueueUrl=url, Label="all")
    assert "Policy" not in attributes(sqs, url)
    with pytest.raises(ClientError, match="can't find label"):
        sqs.remove_permission(QueueUrl=url, Label="all")


async def test_permissions_that_are_added_at_once_are_all_stored(autojump_clock) -> None:
    async with memory_system() as system:
        tags, caller = SqsTags(system.broker, DetailChanges(system.broker)), caller_with_all_rights()
        await system.broker.produce("q", "x")
        async with trio.open_nursery() as nursery:
            for label in ("a", "b", "c"):
                asked = AddPermissionRequest("q", label, ["111122223333"], ["*"])
                nursery.start_soon(tags.add_permission, caller, asked)
        stored = system.broker.known.settings_of("q").sqs
        assert stored is not None
        assert labels_of(stored.attributes["Policy"]) == {"a", "b", "c"}


def test_a_purge_is_allowed_once_a_minute(sqs, url) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.purge_queue(QueueUrl=url)
    assert receive(sqs, url) == []
    with pytest.raises(sqs.exceptions.PurgeQueueInProgress) as error:
        sqs.purge_queue(QueueUrl=url)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


async def test_a_purge_that_failed_may_be_tried_again_at_once(autojump_clock) -> None:
    async with memory_system() as system:
        queues = SqsQueues(system.broker, DetailChanges(system.broker))
        caller, asked = caller_with_all_rights(), QueueUrlRequest("q")
        await system.broker.produce("q", "x")
        system.writer.storage.files_problem = "the file is gone"
        with pytest.raises(StorageLost):
            await queues.purge(caller, asked)
        system.writer.storage.files_problem = None
        await queues.purge(caller, asked)
        assert system.broker.known.counts_of("q").total == 0
        with pytest.raises(SqsError, match="allowed every 60 seconds"):
            await queues.purge(caller, asked)


async def test_a_purge_is_allowed_again_although_the_clock_was_set_back(autojump_clock, monkeypatch) -> None:
    async with memory_system() as system:
        queues = SqsQueues(system.broker, DetailChanges(system.broker))
        caller, asked = caller_with_all_rights(), QueueUrlRequest("q")
        await system.broker.produce("q", "x")
        await queues.purge(caller, asked)
        an_hour_ago = time.time_ns() - limits.HOUR_MS * 1_000_000
        monkeypatch.setattr(time, "time_ns", lambda: an_hour_ago)
        autojump_clock.jump(30)
        with pytest.raises(SqsError, match="allowed every 60 seconds"):
            await queues.purge(caller, asked)
        autojump_clock.jump(60)
        await queues.purge(caller, asked)


def test_a_deleted_queue_is_gone_with_its_messages(sqs, url, name) -> None:
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.delete_queue(QueueUrl=url)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        receive(sqs, url)
    sqs.create_queue(QueueName=name)
    assert receive(sqs, url) == []


def dead_letters(sqs: Any, name: str, **more: str) -> tuple[str, str, str]:
    """URLs of a queue and of the one for its dead letters, which is named after one receive; and that one's ARN."""
    target = sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = attributes(sqs, target)["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
    source = sqs.create_queue(QueueName=f"{name}-source", Attributes={"RedrivePolicy": policy, **more})[
        "QueueUrl"
    ]
    return source, target, arn


def ended(sqs: Any, arn: str) -> dict[str, Any]:
    """The latest move task of a queue, once it has ended."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while (task := sqs.list_message_move_tasks(SourceArn=arn)["Results"][0])["Status"] == "RUNNING":
        assert time.monotonic() < until, task
    return dict(task)


def test_a_message_that_was_received_too_often_is_a_dead_letter_and_comes_back(sqs, name) -> None:
    source, target, arn = dead_letters(sqs, name, VisibilityTimeout="0")
    assert json.loads(attributes(sqs, source)["RedrivePolicy"]) == {
        "deadLetterTargetArn": arn,
        "maxReceiveCount": 1,
    }
    assert sqs.list_dead_letter_source_queues(QueueUrl=target)["queueUrls"] == [source]
    sent = sqs.send_message(QueueUrl=source, MessageBody="x")
    assert bodies(receive(sqs, source)) == ["x"]
    assert receive(sqs, source) == []
    (dead,) = receive(sqs, target, VisibilityTimeout=0, AttributeNames=["All"])
    assert dead["MessageId"] == sent["MessageId"]
    assert dead["Attributes"]["DeadLetterQueueSourceArn"].endswith(f"{name}-source")
    handle = sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
    assert handle
    (moved,) = receive(sqs, source, WaitTimeSeconds=10)
    assert moved["MessageId"] == sent["MessageId"]
    task = ended(sqs, arn)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    assert "TaskHandle" not in task
    with pytest.raises(ClientError, match="Task does not exist"):
        sqs.cancel_message_move_task(TaskHandle=handle)


def test_what_expires_is_no_dead_letter(sqs: Any, api: httpx.Client, name: str) -> None:
    source, target, _ = dead_letters(sqs, name)
    body = {"content": "x", "ttlMs": 1}
    assert api.post(f"/api/v1/queues/{name}-source/messages", json=body).is_success
    until = time.monotonic() + WAIT_SECONDS_MAX
    while attributes(sqs, source, *COUNTS) != dict.fromkeys(COUNTS, "0"):
        assert time.monotonic() < until
    assert attributes(sqs, target, *COUNTS) == dict.fromkeys(COUNTS, "0")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"maxReceiveCount": 1}, "mandatory"),
        (
            {"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:absent", "maxReceiveCount": 1},
            "does not exist",
        ),
        ({"deadLetterTargetArn": "ARN", "maxReceiveCount": 0}, "maxReceiveCount"),
        ({"deadLetterTargetArn": "ARN", "maxReceiveCount": 1001}, "maxReceiveCount"),
        ({"deadLetterTargetArn": "ARN", "maxReceiveCount": "x"}, "maxReceiveCount"),
    ],
)
def test_redrive_policies_that_are_refused(sqs, url, policy, message) -> None:
    arn = attributes(sqs, url)["QueueArn"]
    text = json.dumps(policy).replace('"ARN"', json.dumps(arn))
    with pytest.raises(ClientError, match=message):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": text})


def test_a_queue_that_takes_no_dead_letters_moves_none(sqs, url) -> None:
    with pytest.raises(ClientError, match="Source queue must be configured as a Dead Letter Queue"):
        sqs.start_message_move_task(SourceArn=attributes(sqs, url)["QueueArn"])
    with pytest.raises(sqs.exceptions.ResourceNotFoundException) as error:
        sqs.start_message_move_task(SourceArn="arn:aws:sqs:us-east-1:000000000000:absent")
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_reset_of_its_settings_leaves_what_only_sqs_says_of_a_queue(sqs: Any, api: httpx.Client) -> None:
    name = "r" * 80  # longer than names may be elsewhere, so its whole name is with the settings
    url = sqs.create_queue(QueueName=name, tags={"team": "shop"})["QueueUrl"]
    (house_name,) = [each for each in _queue_names(api) if each.startswith("rrr")]
    assert api.delete(f"/api/v1/queues/{house_name}/settings").is_success
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "shop"}
    assert url in sqs.list_queues(QueueNamePrefix="rrr")["QueueUrls"]


def _queue_names(api: httpx.Client) -> list[str]:
    return [each["queue"] for each in api.get("/api/v1/queues").json()["queues"]]
