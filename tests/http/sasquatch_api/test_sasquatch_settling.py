"""POST /delete and /change_visibility (S5), and what is said of queues (S1)."""

import pytest

from .harness import Api

UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


async def handle(api: Api, queue: str = "q", **members: object) -> str:
    await api.send(queue=queue)
    (message,) = await api.receive(queue, **members)
    return message["receipt_handle"]


async def test_delete_counts_what_matched(api: Api):
    """S5: handles of several queues, one of them twice, one of nothing."""
    first, second = await handle(api), await handle(api, "other")
    assert await api.ok("delete", {"receipt_handles": [first, first, second, UUID]}) == {"deleted": 2}
    assert await api.error("delete", {"receipt_handles": [first, UUID]}) == (404, "NotFound")
    assert await api.length() == await api.length("other") == (0, 0)


async def test_a_handle_matches_until_the_next_receive(api: Api):
    """S5: also when the message has become visible again meanwhile; then it stops."""
    late = await handle(api, visibility_timeout=10)
    api.clock.pass_seconds(10)
    assert await api.length() == (1, 0)
    assert await api.ok("delete", {"receipt_handles": [late]}) == {"deleted": 1}

    stale = await handle(api, visibility_timeout=10)
    api.clock.pass_seconds(10)
    (message,) = await api.receive()
    for endpoint in ("delete", "change_visibility"):
        body = {"receipt_handles": [stale], "visibility_timeout": 0}
        assert await api.error(endpoint, body) == (404, "NotFound")
    assert await api.ok("delete", {"receipt_handles": [message["receipt_handle"]]}) == {"deleted": 1}


async def test_change_visibility_extends_and_shortens(api: Api):
    held = await handle(api)
    body = {"receipt_handles": [held]}
    assert await api.ok("change_visibility", body | {"visibility_timeout": 60}) == {"result": "ok"}
    api.clock.pass_seconds(59.999)
    assert await api.receive() == []
    assert await api.ok("change_visibility", body | {"visibility_timeout": 1}) == {"result": "ok"}
    api.clock.pass_seconds(1)
    assert await api.texts() == ["m"]


@pytest.mark.parametrize("seconds", [-43_200, -1, 0])
async def test_a_negative_timeout_makes_visible_now(api: Api, seconds: int):
    held = await handle(api)
    await api.ok("change_visibility", {"receipt_handles": [held], "visibility_timeout": seconds})
    assert await api.length() == (1, 0)
    assert (await api.receive())[0]["approximate_receive_count"] == 2


async def test_change_visibility_hides_again_what_became_visible(api: Api):
    """S5: as long as the handle matches, in flight or not."""
    held = await handle(api, visibility_timeout=5)
    api.clock.pass_seconds(5)
    assert await api.length() == (1, 0)
    await api.ok("change_visibility", {"receipt_handles": [held, UUID], "visibility_timeout": 60})
    assert await api.length() == (0, 1)
    assert await api.receive() == []
    assert await api.ok("delete", {"receipt_handles": [held]}) == {"deleted": 1}


async def test_delete_all(api: Api):
    """S1: a queue in whatever state its messages are, or all queues; handles stop matching."""
    held = await handle(api)
    await api.send()
    await api.send(delay_seconds=60)
    await api.send(queue="other")
    assert await api.ok("delete_all", {"queue_name": "q"}) == {"result": "ok", "deleted": 3}
    assert await api.error("delete", {"receipt_handles": [held]}) == (404, "NotFound")
    assert await api.length("other") == (1, 0)
    assert await api.ok("delete_all", {"queue_name": "never-used"}) == {"result": "ok", "deleted": 0}
    await api.send()
    assert await api.ok("delete_all", {"queue_name": "*"}) == {"result": "ok", "deleted": 2}
    assert await api.length("other") == await api.length() == (0, 0)


async def test_queue_length_and_queues(api: Api):
    """S1: the documents of the README, members in their order."""
    length = await api.ok("queue_length", {"queue_name": "never-used"})
    assert list(length.items()) == [("queue_name", "never-used"), ("count", 0), ("in_flight", 0)]
    assert await api.ok("queues", method="GET") == []
    for _ in range(3):
        await api.send(queue="orders")
    await api.receive("orders", max_number_of_messages=2)
    await api.send(queue="notifications")
    queues = await api.ok("queues", method="GET")
    assert [list(each.items()) for each in queues] == [
        [("queue_name", "notifications"), ("count", 1), ("in_flight", 0)],
        [("queue_name", "orders"), ("count", 1), ("in_flight", 2)],
    ]
