"""The list of messages where the full disk has no space to show those that a pipeline has leased."""

from types import SimpleNamespace
from typing import Any

import pytest

from forq_trio.model.errors import StorageFull
from forq_trio.ui.key_counts import KeyCount
from forq_trio.ui.pages.message_list import NO_SPACE, ListedMessages, MessagePages


async def _refused(*_: Any, **__: Any) -> None:
    raise StorageFull


async def _no_keys(*_: Any, **__: Any) -> KeyCount:
    return KeyCount()


@pytest.mark.parametrize(
    "listed", [ListedMessages(), ListedMessages(state="processing"), ListedMessages(q="text")]
)
async def test_the_page_says_why_there_are_none(listed: ListedMessages) -> None:
    lists = SimpleNamespace(list_messages=_refused, find_messages=_refused)
    site: Any = SimpleNamespace(key_counts=SimpleNamespace(of=_no_keys), broker=SimpleNamespace(lists=lists))
    viewer: Any = None
    page = await MessagePages(site, viewer, "q").page(listed)
    assert (list(page.rows), page.error, page.next) == ([], NO_SPACE, None)
