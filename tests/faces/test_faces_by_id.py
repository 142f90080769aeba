"""Methods on one message by its id refuse alike what is no queue, no id, and no message of the queue."""

import inspect
from functools import partial

import pytest

from forq_trio.model.messages.methods import MessageMethods
from forq_trio.model.messages.types import QueueCounts

from .face import MESSAGE_ID_INVALID, NOT_FOUND, QUEUE_INVALID
from .words import code_of

BY_ID = sorted(
    name
    for name, each in inspect.getmembers(MessageMethods, inspect.isfunction)
    if "_perform" in each.__code__.co_names
    and [*inspect.signature(each).parameters][1:3] == ["queue", "message_id"]
)
"""Those that are one command, for which neither the broker nor a client has code."""


def test_there_are_some() -> None:
    assert "cancel" in BY_ID


@pytest.mark.parametrize(
    ("name", "options"), [*[(name, {}) for name in BY_ID], ("cancel", {"running": True})]
)
async def test_bad_names(name: str, options: dict[str, bool], face) -> None:
    sent = await face.send()
    method = partial(getattr(face.methods, name), **options)
    assert await code_of(method("another", sent.id)) == NOT_FOUND
    assert await code_of(method("no name", sent.id)) == QUEUE_INVALID
    assert await code_of(method("q", "nonsense")) == MESSAGE_ID_INVALID
    assert await face.counts() == QueueCounts(ready=1)
