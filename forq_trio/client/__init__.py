"""Clients of a forq-trio server over HTTP: `ForqClient` blocks, `AsyncForqClient` is for trio and asyncio.

Of the rest of forq-trio this package imports only `forq_trio.wire`, the JSON of the API. A client is
imported when it is first used, so that a program with the blocking one loads no event loop.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from forq_trio.client.batches import batches
from forq_trio.client.errors import ForqApiError, ForqClientError, ForqProtocolError, ForqUnreachable
from forq_trio.client.types import (
    DeadLetterFilter,
    DeadLetterPage,
    Delivery,
    ExponentialBackOff,
    Failure,
    MessageInfo,
    MoveResult,
    NewMessage,
    Produced,
    QueueConfiguration,
    QueueInfo,
    QueueRules,
    QueueSettings,
    ReceiptResult,
    RedriveInfo,
    Rejected,
    Resubmitted,
)

if TYPE_CHECKING:
    from forq_trio.client.aio import AsyncForqClient
    from forq_trio.client.sync import ForqClient

_HOMES = {"AsyncForqClient": "aio", "ForqClient": "sync"}

__all__ = [
    "AsyncForqClient",
    "DeadLetterFilter",
    "DeadLetterPage",
    "Delivery",
    "ExponentialBackOff",
    "Failure",
    "ForqApiError",
    "ForqClient",
    "ForqClientError",
    "ForqProtocolError",
    "ForqUnreachable",
    "MessageInfo",
    "MoveResult",
    "NewMessage",
    "Produced",
    "QueueConfiguration",
    "QueueInfo",
    "QueueRules",
    "QueueSettings",
    "ReceiptResult",
    "RedriveInfo",
    "Rejected",
    "Resubmitted",
    "batches",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
