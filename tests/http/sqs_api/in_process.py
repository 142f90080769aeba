"""The dialect in this process, on the oracle: for what a test has to see from inside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import trio

from forq_trio.http.message import Request
from forq_trio.http.sqs_api.caller import SqsCaller
from forq_trio.http.sqs_api.json_protocol import TARGET_HEADER
from forq_trio.http.sqs_api.names import SqsAccount
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import System, open_system
from oracle.engine import MemoryEngine
from support.actors import TrioClock, on_the_loop

ACCOUNT = SqsAccount("000000000000", "us-east-1")


@asynccontextmanager
async def memory_system() -> AsyncIterator[System]:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        yield system


def request_of(body: bytes = b"", target: str = "") -> Request:
    """A request that nobody signed, with all rights. target: the operation, in the JSON protocol."""
    headers = {TARGET_HEADER: f"AmazonSQS.{target}".encode()} if target else {}
    return Request("POST", "/", "", headers, body, "127.0.0.1", lambda: nullcontext())


def caller_with_all_rights() -> SqsCaller:
    return SqsCaller(request_of(), ACCOUNT.region, ACCOUNT)


class Turns:
    """Counts how often other tasks have their turn."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1
