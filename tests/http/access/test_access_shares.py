"""A narrow token cannot use up the names of queues."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from support.forq_api import SECRET, Api, blamed

from .conftest import Holder, Tokens


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("x-3/messages", b'{"content": "m"}'),
        ("x-3/messages/batch", b'{"messages": [{"content": "m"}]}'),
        ("x-1/messages", b'{"content": "m", "deadLetterQueue": "x-3"}'),
    ],
)
async def test_a_token_that_has_made_its_share_of_queues_makes_no_more(
    api: Api, tokens: Tokens, monkeypatch, path, body
):
    monkeypatch.setattr(limits, "QUEUES_A_TOKEN_MAX", 2)
    narrow, other = await tokens.holder(Scope.PRODUCE, queues="x-*"), await tokens.holder(Scope.PRODUCE)
    for queue in ("x-1", "x-2", "x-1"):
        assert (await narrow.ask("POST", f"{queue}/messages", b'{"content": "m"}'))[0] < 300
    status, answer = await narrow.ask("POST", path, body)
    assert (status, blamed(answer)["code"]) == (409, "conflict.too_many_queues")
    assert answer["message"].startswith("this token has made 2 queues")
    for holder, queue in ((other, "x-3"), (Holder(api, SECRET), "x-4"), (narrow, "x-4")):
        assert (await holder.ask("POST", f"{queue}/messages", b'{"content": "m"}'))[0] < 300
