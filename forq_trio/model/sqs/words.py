"""What a queue has that only clients of SQS set, in words."""

import json
from collections.abc import Callable

from msgspec import Struct

from forq_trio.model.bounds.units import KIB
from forq_trio.model.queues.names import is_fifo_queue
from forq_trio.model.sqs.types import SqsDetails


class QueueDetails(Struct, frozen=True):
    """What clients of one dialect set of a queue, and the rest of the server only shows."""

    dialect: str
    facts: tuple[tuple[str, str], ...]  # labels with words
    documents: tuple[tuple[str, str], ...]  # labels with JSON
    tags: dict[str, str]


def in_words(queue: str, details: SqsDetails) -> QueueDetails:
    """The details of a queue for people. queue: its name."""
    left = dict(details.attributes)
    facts = [("Name", details.full_name)] if details.full_name else []
    is_fifo = is_fifo_queue(details.full_name or queue)
    facts.append(("Type", "FIFO" if is_fifo else "standard"))
    left.pop("FifoQueue", None)
    if is_fifo:
        by_content = left.pop("ContentBasedDeduplication", "") == "true"
        by_group = left.pop("DeduplicationScope", "") == "messageGroup"
        words = f"by {'content' if by_content else 'id'}{', in each group' if by_group else ''}"
        facts.append(("Deduplication", words))
    policy = left.pop("Policy", "")
    facts += [(label, show(left.pop(name))) for name, (label, show) in _WORDS.items() if name in left]
    return QueueDetails("SQS", (*facts, *left.items()), (("Policy", policy),) if policy else (), details.tags)


def _size(text: str) -> str:
    kib, rest = divmod(int(text), KIB)
    return f"{int(text):,} B" if rest else f"{kib:,} KiB"


def _sources(text: str) -> str:
    """The queues whose dead letters a queue takes."""
    policy = json.loads(text)
    words = {"allowAll": "all queues", "denyAll": "no queue"}.get(policy["redrivePermission"])
    return words or ", ".join(str(arn).rpartition(":")[2] for arn in policy["sourceQueueArns"])


_WORDS: dict[str, tuple[str, Callable[[str], str]]] = {
    "MaximumMessageSize": ("Largest message", _size),
    "ReceiveMessageWaitTimeSeconds": ("Receives wait", lambda text: f"{text} s"),
    "RedriveAllowPolicy": ("Dead letters from", _sources),
}
