"""Clients of a forq-trio server over HTTP: `ForqClient` blocks, `AsyncForqClient` is for trio and asyncio.

Of the rest of forq-trio this package imports only `forq_trio.wire`, the JSON of the API.
"""

from forq_trio.client.aio import AsyncForqClient
from forq_trio.client.batches import batches
from forq_trio.client.errors import ForqApiError, ForqClientError, ForqProtocolError, ForqUnreachable
from forq_trio.client.sync import ForqClient
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
