"""The dialect, and dead letters, beside a consumer of a pipeline: what it has leased is in flight, nobody else's."""

from .harness import Api


async def leased(api: Api, queue: str = "q") -> int:
    """Lease all that is in a queue to a consumer; returns its generation."""
    consumer = await api.broker.open_consumer(queue, "c")
    lease = await api.broker.lease(queue, "c", consumer.generation, 1)
    assert lease.complete
    return consumer.generation


async def test_what_is_leased_is_in_flight_and_not_received(api: Api):
    for text in "ab":
        await api.send(text)
    generation = await leased(api)
    await api.send("c")
    assert await api.length() == (1, 2)
    assert await api.texts(max_number_of_messages=10, max_receives=1, dead_letter_queue_name="dead") == ["c"]
    await api.broker.acknowledge("q", "c", generation, 1)
    assert await api.length() == (0, 1)


async def test_handles_of_before_a_lease_end_with_it(api: Api):
    await api.send("a")
    (message,) = await api.receive(visibility_timeout=10)
    api.clock.pass_seconds(10)
    await api.broker.healthcheck()
    generation = await leased(api)
    for endpoint in ("delete", "change_visibility"):
        body = {"receipt_handles": [message["receipt_handle"]], "visibility_timeout": 0}
        assert await api.error(endpoint, body) == (404, "NotFound")
    assert await api.length() == (0, 1)
    await api.broker.acknowledge("q", "c", generation, 1)
    assert await api.length() == (0, 0)


async def test_deliveries_of_a_lease_that_was_given_back_do_not_count(api: Api):
    await api.send("a")
    await leased(api)
    await api.broker.release_consumer("q", "c")
    policy = {"max_receives": 1, "dead_letter_queue_name": "dead"}
    assert await api.texts(**policy) == ["a"]


async def test_a_purge_takes_what_is_leased(api: Api):
    await api.send("a")
    generation = await leased(api)
    assert await api.broker.purge("q") == 1
    await api.broker.acknowledge("q", "c", generation, 1)
    assert await api.length() == (0, 0)


async def test_dead_letters_that_are_leased_are_neither_moved_nor_deleted(api: Api):
    await api.send("a")
    policy = {"max_receives": 1, "dead_letter_queue_name": "q-dlq", "visibility_timeout": 1}
    assert await api.texts(**policy) == ["a"]
    api.clock.pass_seconds(2)
    assert await api.texts(**policy) == []
    (dead,) = await api.broker.peek("q-dlq")
    generation = await leased(api, "q-dlq")
    for change in (api.broker.redrive, api.broker.delete_dead_letters):
        (result,) = await change("q-dlq", [dead.id])
        assert not result.ok
    await api.broker.acknowledge("q-dlq", "c", generation, 1)
    assert await api.length("q-dlq") == (0, 0)


async def test_a_lease_holds_no_more_of_a_group_than_its_limit(api: Api):
    await api.broker.configure("q", group_in_flight_max=1)
    for text in "abc":
        await api.broker.produce("q", text, group="g")
    generation = await leased(api)
    assert (await api.broker.consumer("q", "c")).open_messages == 1
    assert await api.texts() == []
    await api.broker.acknowledge("q", "c", generation, 1)
    assert await api.texts() == ["b"]
