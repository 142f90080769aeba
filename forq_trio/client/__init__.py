"""Clients of a forq-trio server over HTTP: `ForqClient` blocks, `AsyncForqClient` is for trio and asyncio.

This package stands alone: it imports nothing of the server.
"""

from forq_trio.client.aio import AsyncForqClient
from forq_trio.client.batches import batches
from forq_trio.client.dead_letters import (
    DeadLetterFilter,
    DeadLetterPage,
    MoveResult,
    RedriveInfo,
    Resubmitted,
)
from forq_trio.client.errors import ForqApiError, ForqClientError, ForqProtocolError, ForqUnreachable
from forq_trio.client.settings import ExponentialBackOff, QueueConfiguration, QueueRules, QueueSettings
from forq_trio.client.sync import ForqClient
from forq_trio.client.types import (
    Delivery,
    Failure,
    MessageInfo,
    NewMessage,
    Produced,
    QueueInfo,
    ReceiptResult,
    Rejected,
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
