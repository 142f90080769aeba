"""A message has the same lifecycle events whether it lives over Amazon SQS or over our own API."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

from forq_trio.model.limits import MAX_ATTEMPTS_MAX
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS

from .http_face import HttpFace
from .running import open_face
from .words import MINUTE, SECOND

LEASE_SECONDS, TTL_SECONDS = 30, 60
ARN = "arn:aws:sqs:us-east-1:000000000000:"


class Caller(ABC):
    """Who uses a queue, over one of the two; the queue has its name, its dead-letter queue `<name>-dead`."""

    name: str

    def __init__(self, face: HttpFace) -> None:
        self.face = face

    @abstractmethod
    async def make(self, attempts: int | None = None) -> None:
        """Make the queue; with a dead-letter queue if there is a bound on attempts."""

    @abstractmethod
    async def send(self) -> str: ...

    @abstractmethod
    async def take(self) -> str:
        """The receipt of the next message."""

    @abstractmethod
    async def extend(self, receipt: str, seconds: int) -> None: ...

    @abstractmethod
    async def delete(self, receipt: str) -> None: ...

    @abstractmethod
    async def purge(self) -> None: ...

    @abstractmethod
    async def move_back(self) -> None:
        """Start to move the dead letters to where they came from."""


class OverForq(Caller):
    name = "forq"

    async def make(self, attempts=None) -> None:
        await self.face.configure(
            self.name,
            lease_ms=LEASE_SECONDS * SECOND,
            ttl_ms=TTL_SECONDS * SECOND,
            max_attempts=attempts or MAX_ATTEMPTS_MAX,
            dead_letter_queue=f"{self.name}-dead" if attempts else NO_DEAD_LETTERS,
        )

    async def send(self) -> str:
        return (await self.face.send("x", self.name)).id

    async def take(self) -> str:
        return (await self.face.take(self.name)).receipt

    async def extend(self, receipt, seconds) -> None:
        await self.face.extend(receipt, lease_ms=seconds * SECOND, queue=self.name)

    async def delete(self, receipt) -> None:
        assert await self.face.ack(receipt, queue=self.name) == [True]

    async def purge(self) -> None:
        await self.face.purge(self.name)

    async def move_back(self) -> None:
        await self.face.methods.start_redrive(f"{self.name}-dead")


class OverSqs(Caller):
    name = "sqs"

    async def _call(self, operation: str, **members: object) -> dict[str, Any]:
        return await self.face.sqs(operation, QueueUrl=self.name, **members)

    async def make(self, attempts=None) -> None:
        attributes = {"VisibilityTimeout": str(LEASE_SECONDS), "MessageRetentionPeriod": str(TTL_SECONDS)}
        if attempts:
            await self.face.sqs("CreateQueue", QueueName=f"{self.name}-dead")
            policy = {"deadLetterTargetArn": f"{ARN}{self.name}-dead", "maxReceiveCount": attempts}
            attributes["RedrivePolicy"] = json.dumps(policy)
        await self.face.sqs("CreateQueue", QueueName=self.name, Attributes=attributes)

    async def send(self) -> str:
        return str((await self._call("SendMessage", MessageBody="x"))["MessageId"])

    async def take(self) -> str:
        (message,) = (await self._call("ReceiveMessage"))["Messages"]
        return str(message["ReceiptHandle"])

    async def extend(self, receipt, seconds) -> None:
        await self._call("ChangeMessageVisibility", ReceiptHandle=receipt, VisibilityTimeout=seconds)

    async def delete(self, receipt) -> None:
        await self._call("DeleteMessage", ReceiptHandle=receipt)

    async def purge(self) -> None:
        await self._call("PurgeQueue")

    async def move_back(self) -> None:
        await self.face.sqs("StartMessageMoveTask", SourceArn=f"{ARN}{self.name}-dead")


@pytest.fixture
async def face(url: str) -> AsyncIterator[HttpFace]:
    async with open_face("http", url, events=True) as face:
        assert isinstance(face, HttpFace)
        yield face


async def processed(caller: Caller) -> str:
    await caller.make()
    sent = await caller.send()
    await caller.face.advance(SECOND)
    receipt = await caller.take()
    await caller.face.advance(SECOND)
    await caller.extend(receipt, 40)
    await caller.face.advance(LEASE_SECONDS * SECOND)
    await caller.delete(receipt)
    return sent


async def given_back(caller: Caller) -> str:
    """Its lease ends, its consumer gives it back, then somebody processes it."""
    await caller.make()
    sent = await caller.send()
    await caller.take()
    await caller.face.advance(LEASE_SECONDS * SECOND)
    await caller.face.advance(SECOND)  # the back-off
    receipt = await caller.take()
    await caller.extend(receipt, 0)
    await caller.face.advance(5 * SECOND)
    await caller.delete(await caller.take())
    return sent


async def expired(caller: Caller) -> str:
    await caller.make()
    sent = await caller.send()
    await caller.face.advance(TTL_SECONDS * SECOND)
    return sent


async def purged(caller: Caller) -> str:
    await caller.make()
    sent = await caller.send()
    await caller.purge()
    return sent


async def moved(caller: Caller) -> str:
    """Its attempts are used up, it is a dead letter, is moved back, and processed."""
    await caller.make(attempts=1)
    sent = await caller.send()
    await caller.take()
    await caller.face.advance(LEASE_SECONDS * SECOND)
    await caller.move_back()
    while not (await caller.face.counts(caller.name)).ready:
        await trio.lowlevel.checkpoint()
    await caller.delete(await caller.take())
    return sent


LIVES: dict[Callable[[Caller], Awaitable[str]], list[str]] = {
    processed: ["produced", "delivered", "extended", "acked"],
    given_back: [
        *("produced", "delivered", "lease_expired", "delivered", "lease_expired", "delivered", "acked")
    ],
    expired: ["produced", "expired"],
    purged: ["produced", "deleted"],
    moved: [*("produced", "delivered", "lease_expired", "dead_lettered", "requeued", "delivered", "acked")],
}


@pytest.mark.parametrize("live", LIVES)
async def test_a_life_has_the_same_events_over_both(face: HttpFace, live) -> None:
    found = []
    for caller in (OverForq(face), OverSqs(face)):
        sent = await live(caller)
        await face.advance(MINUTE)
        events = await face.methods.message_events(caller.name, sent)
        found.append(
            [
                (
                    *(event.kind, event.attempt, event.reason, event.duration_ms, event.bytes),
                    *(event.at - event.received_at, event.queue.removeprefix(caller.name)),
                    event.target and event.target.removeprefix(caller.name),
                )
                for event in events
            ]
        )
    assert [kind for kind, *_ in found[0]] == LIVES[live]
    assert found[1] == found[0]
