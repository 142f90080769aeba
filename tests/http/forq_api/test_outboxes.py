"""POST /outboxes/{outbox}/messages: what is no message is refused alone, what is no page as a whole."""

from typing import Any

from forq_trio.model import limits
from support.forq_api import Api, json_of

AT = "/api/v1/outboxes/o/messages"


def relayed(id: int, **message: Any) -> dict[str, Any]:
    return {"id": id, "queue": "q", "message": message}


async def test_a_message_that_is_none_is_named_and_what_is_before_it_stored(api: Api):
    for number, (message, code) in enumerate(
        [
            ({}, "bad_request.body.invalid"),
            ({"content": 1}, "bad_request.body.invalid"),
            ({"content": "x", "newer": 1}, "bad_request.body.unknown_field"),
            ({"content": "x" * (limits.CONTENT_BYTES_MAX + 1)}, "bad_request.body.content.exceeds_limit"),
        ],
        1,
    ):
        at = f"/api/v1/outboxes/o{number}/messages"
        messages = [relayed(1, content="1"), relayed(2, **message), relayed(3, content="3")]
        answer = json_of(await api.call("POST", at, {"after": 0, "messages": messages}))
        assert (answer["position"], answer["refused"]["id"], answer["refused"]["code"]) == (1, 2, code)
        again = json_of(await api.call("POST", at, {"after": 1, "messages": messages[1:]}))
        assert (again["position"], again["refused"]["id"]) == (1, 2)
        rest = json_of(await api.call("POST", at, {"after": 1, "messages": messages[2:]}))
        assert rest == {"position": 3}
        assert (await api.broker.queue_stats("q")).ready == 2 * number


async def test_another_position_is_answered_before_a_message_that_is_none(api: Api):
    await api.call("POST", AT, {"after": 0, "messages": [relayed(5, content="5")]})
    assert json_of(await api.call("POST", AT, {"after": 0, "messages": [relayed(1)]})) == {"position": 5}


async def test_what_is_no_page_is_refused_whole(api: Api):
    pages: list[tuple[list[Any], str]] = [
        ([relayed(1, content="1"), {"id": "2", "queue": "q", "message": {}}], "$.messages[1].id"),
        ([{"id": 1, "message": {"content": "1"}}], "$.messages[0].queue"),
        ([relayed(2, content="2"), relayed(2)], "$.messages"),
        ([relayed(1)] * (limits.OUTBOX_PAGE_MAX + 1), "$.messages"),
        ([1], "$.messages[0]"),
    ]
    for messages, field in pages:
        response = await api.call("POST", AT, {"after": 0, "messages": messages})
        assert (response.status, json_of(response)["field"]) == (400, field)
    assert list(api.broker.known.counts()) == []
