"""boto3's resource and client, aioboto3, and the AWS CLI. The latter two pin libraries: each has an environment."""

import json
import sys
from pathlib import Path

import boto3
import pytest

from support.foreign import install, run
from support.sqs_clients import PROGRAMS, TESTS, left

pytestmark = [pytest.mark.process, pytest.mark.tier2]


def environment_with(package: str, folder: Path) -> Path:
    """The folder with the programs of a new environment that has a package of PyPI."""
    run(folder, sys.executable, "-m", "venv", "venv")
    install(TESTS, folder, str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", package)
    return folder / "venv" / "bin"


def test_the_resource_of_boto3(here, sqs) -> None:
    resource = boto3.resource("sqs")
    graves = resource.create_queue(QueueName="graves")
    policy = json.dumps({"deadLetterTargetArn": graves.attributes["QueueArn"], "maxReceiveCount": 2})
    queue = resource.create_queue(QueueName="orders", Attributes={"RedrivePolicy": policy})
    kind = {"StringValue": "rød", "DataType": "String"}
    entries = [
        {"Id": str(number), "MessageBody": f"über {number}", "MessageAttributes": {"kind": kind}}
        for number in range(10)
    ]
    assert len(queue.send_messages(Entries=entries)["Successful"]) == 10

    bodies = set()
    while len(bodies) < 10:
        for message in queue.receive_messages(
            MessageAttributeNames=["All"], AttributeNames=["All"], MaxNumberOfMessages=10, WaitTimeSeconds=20
        ):
            assert message.message_attributes["kind"] == kind
            assert message.attributes["ApproximateReceiveCount"] == "1"
            bodies.add(message.body)
            if message.body != "über 3":
                message.delete()
            else:
                message.change_visibility(VisibilityTimeout=0)
                (again,) = queue.receive_messages(WaitTimeSeconds=20)
                again.change_visibility(VisibilityTimeout=0)
    (buried,) = graves.receive_messages(WaitTimeSeconds=20)
    assert buried.body == "über 3"
    assert [each.url for each in graves.dead_letter_source_queues.all()] == [queue.url]
    assert {each.url for each in resource.queues.all()} == {queue.url, graves.url}
    queue.reload()
    assert queue.attributes["ApproximateNumberOfMessages"] == "0"
    assert left(sqs, "orders") == 0
    graves.purge()
    assert left(sqs, "graves") == 0
    queue.delete()
    assert {each.url for each in resource.queues.filter(QueueNamePrefix="or")} == set()


def test_the_paginators_of_boto3(sqs) -> None:
    graves = sqs.create_queue(QueueName="graves")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=graves, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = {"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})}
    urls = [
        sqs.create_queue(QueueName=f"of-{number:02}", Attributes=policy)["QueueUrl"] for number in range(7)
    ]

    pages = list(
        sqs.get_paginator("list_queues").paginate(QueueNamePrefix="of-", PaginationConfig={"PageSize": 3})
    )
    assert [page["QueueUrls"] for page in pages] == [urls[:3], urls[3:6], urls[6:]]
    sources = sqs.get_paginator("list_dead_letter_source_queues")
    pages = list(sources.paginate(QueueUrl=graves, PaginationConfig={"PageSize": 3}))
    assert [page["queueUrls"] for page in pages] == [urls[:3], urls[3:6], urls[6:]]


def test_aioboto3(variables, tmp_path) -> None:
    programs = environment_with("aioboto3>=13", tmp_path)
    life = str(PROGRAMS / "aioboto3_life.py")
    assert run(tmp_path, str(programs / "python"), life, **variables).stdout == "alive\n"


def test_the_aws_cli(variables, tmp_path) -> None:
    programs = environment_with("awscli>=1.34", tmp_path)
    said = run(
        tmp_path, "sh", "-eu", str(PROGRAMS / "aws_cli.sh"), **variables, PATH=f"{programs}:/usr/bin:/bin"
    )
    assert said.stdout == "über\ncome again\nNonExistentQueue\nalive\n"
