"""The dialect in this process, on the oracle: for what a test has to see from inside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from forq_trio.http.message import Request
from forq_trio.http.sqs_api.caller import SqsCaller
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


def request_of(body: bytes = b"") -> Request:
    """A request that nobody signed, with all rights."""
    return Request("POST", "/", "", {}, body, "127.0.0.1", lambda: nullcontext())


def caller_with_all_rights() -> SqsCaller:
    return SqsCaller(request_of(), ACCOUNT.region, ACCOUNT)
