"""Clients of a forq-trio server over HTTP: `ForqClient` blocks, `AsyncForqClient` is for trio and asyncio.

This package stands alone: it imports nothing of the server.
"""

from forq_trio.client.aio import AsyncForqClient
from forq_trio.client.batches import batches
from forq_trio.client.errors import ForqApiError, ForqClientError, ForqProtocolError, ForqUnreachable
from forq_trio.client.sync import ForqClient
from forq_trio.client.types import (
    Delivery,
    MessageInfo,
    NewMessage,
    Produced,
    QueueInfo,
    ReceiptResult,
    Rejected,
)

__all__ = [
    "AsyncForqClient",
    "Delivery",
    "ForqApiError",
    "ForqClient",
    "ForqClientError",
    "ForqProtocolError",
    "ForqUnreachable",
    "MessageInfo",
    "NewMessage",
    "Produced",
    "QueueInfo",
    "ReceiptResult",
    "Rejected",
    "batches",
]
