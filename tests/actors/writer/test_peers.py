"""Two brokers on one PostgreSQL database, each with its own writer."""

import trio

from forq_trio.broker.broker import Broker
from forq_trio.jobs import peers
from forq_trio.model import limits
from forq_trio.model.access.secret_checks import SecretCheck
from forq_trio.model.access.types import Scope
from forq_trio.system import open_broker
from support.actors import until
from support.processes import WAIT_SECONDS_MAX


async def test_a_consumer_that_waits_at_one_gets_what_is_sent_to_the_other(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", 3_600.0)  # the look of a second is not what wakes it
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b, trio.open_nursery() as nursery:
        got: list[str] = []

        async def consume(broker: Broker, queue: str) -> None:
            (delivery,) = await broker.receive(queue, wait_ms=30_000)
            await broker.ack(queue, delivery.receipt)
            got.append(delivery.content)

        for broker in (a, b):
            for queue in ("p", "q"):
                nursery.start_soon(consume, broker, queue)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: all(writer.parked.total == 2 for writer in (a._writer, b._writer)))
            for number in range(2):
                await a.produce("p", f"p{number}")
                await b.produce("q", f"q{number}")
    assert sorted(got) == ["p0", "p1", "q0", "q1"]


async def test_without_a_notification_the_look_finds_it(empty_tables, monkeypatch):
    class Deaf:
        def __init__(self, listener):
            self._listener = listener

        def __getattr__(self, name):
            return getattr(self._listener, name)

        def heard(self):
            self._listener.heard()
            return set()

    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", 0.1)
    original = peers.Peers.__init__

    def deaf(self, listen, *others):
        original(self, lambda: Deaf(listen()), *others)

    monkeypatch.setattr(peers.Peers, "__init__", deaf)
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b, trio.open_nursery() as nursery:
        nursery.start_soon(a.produce, "q", "x")
        with trio.fail_after(WAIT_SECONDS_MAX):
            (delivery,) = await b.receive("q", wait_ms=30_000)
        assert delivery.content == "x"


async def test_a_delayed_message_is_delivered_by_either_when_it_is_due(empty_tables):
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b:
        await a.produce("q", "later", delay_ms=300)
        with trio.fail_after(WAIT_SECONDS_MAX):
            (delivery,) = await b.receive("q", wait_ms=30_000)
        assert delivery.content == "later"


async def test_a_revoked_token_is_refused_by_the_other(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", 0.05)
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b:
        made = await a.create_token("t", scopes=[Scope.CONSUME], queues="*")
        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: b.keys.use(made.token) is not None)
            await a.revoke_token("t")
            await until(lambda: b.keys.use(made.token) is None)


async def test_a_server_gives_what_it_stores_to_those_who_wait_there(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", 3_600.0)
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b, trio.open_nursery() as nursery:
        got: list[str] = []

        async def consume(broker: Broker, name: str) -> None:
            await broker.receive("q", wait_ms=30_000)
            got.append(name)

        with trio.fail_after(WAIT_SECONDS_MAX):
            nursery.start_soon(consume, b, "b, who came first")
            await until(lambda: b._writer.parked.total == 1)
            nursery.start_soon(consume, a, "a")
            await until(lambda: a._writer.parked.total == 1)
            await a.produce("q", "x")
            await until(lambda: bool(got))
            assert got == ["a"]
            await a.produce("q", "y")


async def test_brokers_with_different_secrets_notice_it(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with (
        open_broker(empty_tables) as a,
        open_broker(empty_tables) as b,
        open_broker(empty_tables) as c,
        open_broker(empty_tables),  # without one, as applications are
    ):
        processes = [broker.known_processes for broker in (a, b, c)]
        for each, letter in zip(processes, "xyx", strict=True):
            each.secret = SecretCheck(letter * 32)
        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: all(len(each._differ) == 2 for each in processes))
        assert [each.other_secrets for each in processes] == [1, 2, 1]
