"""Several servers on one database: a queue that one of them has made is there for the clients of all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from msgspec.json import encode

from forq_trio.http.sqs_api.access import UnsignedGate
from forq_trio.http.sqs_api.service import SqsService
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_system

from .in_process import ACCOUNT, request_of


@asynccontextmanager
async def a_server(database: str) -> AsyncIterator[SqsService]:
    engine = await trio.to_thread.run_sync(open_engine, database, EngineSettings(), "normal")
    async with open_system(engine) as system:
        yield SqsService(system.broker, UnsignedGate(ACCOUNT.region), ACCOUNT, None)


async def status(server: SqsService, operation: str, **members: Any) -> int:
    request = request_of(encode(members))
    request.headers = {b"x-amz-target": f"AmazonSQS.{operation}".encode()}
    return (await server.respond(request)).status


async def test_a_queue_is_there_at_once(empty_tables) -> None:
    arn = f"arn:aws:sqs:{ACCOUNT.region}:{ACCOUNT.number}:second"
    policy = encode({"deadLetterTargetArn": arn, "maxReceiveCount": 1}).decode()
    async with a_server(empty_tables) as a, a_server(empty_tables) as b:
        for server, operation, members in (
            (a, "CreateQueue", {"QueueName": "first"}),
            (b, "SendMessage", {"QueueUrl": "first", "MessageBody": "x"}),
            (b, "CreateQueue", {"QueueName": "second"}),
            (a, "SetQueueAttributes", {"QueueUrl": "first", "Attributes": {"RedrivePolicy": policy}}),
            (b, "DeleteQueue", {"QueueUrl": "first"}),
        ):
            assert await status(server, operation, **members) == 200, operation
        assert await status(a, "SendMessage", QueueUrl="first", MessageBody="x") == 400
        for server, seconds, answer in ((a, "10", 200), (b, "20", 400), (b, "10", 200)):
            attributes = {"VisibilityTimeout": seconds}
            assert await status(server, "CreateQueue", QueueName="third", Attributes=attributes) == answer
        assert await status(a, "ReceiveMessage", QueueUrl="fourth") == 400
