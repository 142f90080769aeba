"""The relay moves what was committed, in order and exactly once, whatever happens in between."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest
import trio
import trio.testing

from forq_trio import Broker, InvalidRequest, OutboxPosition, QueueFull, Stopping, open_broker, outbox
from forq_trio.outbox import NoOutbox, OutboxOlder, Relay
from support.processes import WAIT_SECONDS_MAX


class Signal:
    """Stands in for the watch of the files: the test says when something was written."""

    def __init__(self) -> None:
        self._send, self._changes = trio.open_memory_channel[None](9)

    def __call__(self, path: str) -> "Signal":
        return self

    async def wait(self) -> None:
        await self._changes.receive()

    def changed(self) -> None:
        self._send.send_nowait(None)

    def close(self) -> None:
        pass


class Flaky:
    """A broker that carries out a call, or does not, and whose answer is lost."""

    def __init__(self, broker: Broker, *, carried_out: bool) -> None:
        self._broker = broker
        self._carried_out = carried_out
        self.failures = 1

    async def outbox_position(self, name):
        return await self._broker.outbox_position(name)

    async def relay_outbox(self, name, after, messages):
        if self.failures:
            self.failures -= 1
            if self._carried_out:
                await self._broker.relay_outbox(name, after, messages)
            raise Stopping
        return await self._broker.relay_outbox(name, after, messages)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


@pytest.fixture
def journal() -> str:
    """The journal mode of the shop. Tests of what the relay sees of its files, and of its locks, have both."""
    return "wal"


BOTH_JOURNALS = pytest.mark.parametrize("journal", ["wal", "delete"])


@pytest.fixture
def shop(path, journal) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = OFF")
        outbox.create_table(connection)
        connection.commit()
        yield connection


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker("memory:") as broker:
        yield broker


def write(shop: sqlite3.Connection, *contents: str, queue: str = "q", **options) -> None:
    for content in contents:
        outbox.send(shop, queue, content, **options)
    shop.commit()


async def taken(broker: Broker, queue: str = "q") -> list[str]:
    return [each.content for each in await broker.receive(queue, max_messages=100, wait_ms=0)]


def left(shop: sqlite3.Connection) -> int:
    return shop.execute("SELECT count(*) FROM forq_outbox").fetchone()[0]


@BOTH_JOURNALS
async def test_messages_arrive_in_the_order_of_commit_with_their_options(shop, path, broker):
    write(shop, "1", "2", attributes={"k": "v"})
    write(shop, "3", queue="other", delay_ms=60_000)
    assert await Relay(path, broker).relay_all() == 3
    first, second = await broker.receive("q", max_messages=9, wait_ms=0)
    assert (first.content, second.content, first.attributes) == ("1", "2", {"k": "v"})
    assert (await broker.queue_stats("other")).delayed == 1
    assert left(shop) == 0
    assert await Relay(f"sqlite:///{path}", broker).relay_all() == 0


async def test_more_than_a_page_is_moved_page_by_page(shop, path, broker):
    write(shop, *map(str, range(1_001)))
    write(shop, *("x" * 200_000 for _ in range(7)), queue="large")
    assert await Relay(path, broker).relay_all() == 1_008
    assert (await broker.queue_stats("large")).ready == 7


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_lost_answer_loses_and_doubles_nothing(shop, path, broker, carried_out):
    write(shop, "1", "2")
    source = Flaky(broker, carried_out=carried_out)
    with pytest.raises(Stopping):
        await Relay(path, source).relay_all()
    write(shop, "3")
    await Relay(path, source).relay_all()
    assert await taken(broker) == ["1", "2", "3"]
    assert left(shop) == 0


async def test_a_relay_that_runs_tries_again(shop, path, broker):
    write(shop, "1")
    async with Relay(path, Flaky(broker, carried_out=True)):
        with trio.fail_after(WAIT_SECONDS_MAX):
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "1"


@BOTH_JOURNALS
async def test_two_relays_at_once_double_nothing(shop, path, broker):
    write(shop, *map(str, range(30)))
    async with Relay(path, broker), Relay(path, broker):
        with trio.fail_after(WAIT_SECONDS_MAX):
            got = []
            while len(got) < 30:
                got += [each.content for each in await broker.receive("q", max_messages=100, wait_ms=30_000)]
    assert got == [str(number) for number in range(30)]
    assert await taken(broker) == []


async def test_a_message_that_is_refused_for_good_does_not_block_the_rest(shop, path, broker):
    write(shop, "1")
    shop.execute("""INSERT INTO forq_outbox (queue, message) VALUES ('q-dlq', '{"content": "2"}')""")
    write(shop, "3")
    refusals = []
    relay = Relay(path, broker, on_set_aside=refusals.append)
    assert await relay.relay_all() == 2
    assert await taken(broker) == ["1", "3"]
    (aside,) = outbox.set_aside(shop)
    assert (aside.id, aside.queue, aside.message.content) == (2, "q-dlq", "2")
    assert aside.code == "bad_request.queue.produce_to_dlq"
    assert [each.id for each in refusals] == [2]
    shop.execute("UPDATE forq_outbox_set_aside SET queue = 'q'")
    outbox.retry_set_aside(shop, [2])
    shop.commit()
    assert await relay.relay_all() == 1
    assert await taken(broker) == ["2"]
    assert outbox.set_aside(shop) == []


def write_raw(shop: sqlite3.Connection, queue: object, message: object) -> None:
    """As a program may that does not use `outbox.send`."""
    with shop:
        shop.execute("INSERT INTO forq_outbox (queue, message) VALUES (?, CAST(? AS TEXT))", (queue, message))


@pytest.mark.parametrize(
    ("message", "code", "shown"),
    [
        ("no JSON", "bad_request.body.invalid", "no JSON"),
        ('{"content": 1}', "bad_request.body.invalid", '{"content": 1}'),
        ('{"content": "x", "newer": 1}', "bad_request.body.invalid", '{"content": "x", "newer": 1}'),
        (b'{"content": "\xff"}', "bad_request.body.invalid", "\ufffd"),
        ('{"content": "%s"}' % ("x" * 2**21), "bad_request.body.content.exceeds_limit", "x" * 2**21),
        ("[" * 100_000, "bad_request.body.invalid", "[" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_row_that_is_no_message_is_set_aside(shop, path, broker, message, code, shown):
    write(shop, "1")
    write_raw(shop, "q", message)
    write(shop, "3")
    assert await Relay(path, broker).relay_all() == 2
    assert await taken(broker) == ["1", "3"]
    (aside,) = outbox.set_aside(shop)
    assert (aside.id, aside.queue, aside.code, aside.message.content) == (2, "q", code, shown)


class Strict:
    """A server that refuses a page whole, as earlier versions do. ids: of the messages that it takes for bad."""

    def __init__(self, broker: Broker, *ids: int) -> None:
        self._broker = broker
        self._ids = set(ids)
        self.calls = 0

    async def outbox_position(self, name):
        return await self._broker.outbox_position(name)

    async def relay_outbox(self, name, after, messages):
        self.calls += 1
        if self._ids.intersection(each.id for each in messages):
            raise InvalidRequest("one of these is bad")
        return await self._broker.relay_outbox(name, after, messages)


async def test_where_a_page_is_refused_whole_the_bad_message_is_found(shop, path, broker):
    write(shop, *map(str, range(1, 301)))
    source = Strict(broker, 77, 78, 300)
    assert await Relay(path, source).relay_all() == 297
    assert [each.id for each in outbox.set_aside(shop)] == [77, 78, 300]
    assert (await broker.queue_stats("q")).ready == 297
    assert source.calls < 60


async def test_pages_grow_again_where_the_bad_message_was_found_by_another_relay(shop, path, broker):
    class Beside(Strict):
        async def relay_outbox(self, name, after, messages):
            try:
                return await super().relay_outbox(name, after, messages)
            except InvalidRequest:
                if len(messages) == 2 and self._ids:
                    self._ids.clear()
                    await Relay(path, Strict(broker, 1)).relay_all()
                    write(shop, *map(str, range(2, 301)))
                raise

    write(shop, "1", "2", "3", "4")
    source = Beside(broker, 1)
    assert await Relay(path, source).relay_all() == 299
    assert [each.id for each in outbox.set_aside(shop)] == [1]
    assert source.calls < 20


async def test_a_request_that_is_refused_whatever_it_has_sets_nothing_aside(shop, path, broker):
    class Refusing(Strict):
        async def relay_outbox(self, name, after, messages):
            raise InvalidRequest

    write(shop, "1", "2")
    with pytest.raises(InvalidRequest):
        await Relay(path, Refusing(broker)).relay_all()
    assert (left(shop), outbox.set_aside(shop)) == (2, [])


async def test_a_full_queue_is_waited_for(shop, path, broker):
    await broker.configure("q", max_messages=1)
    write(shop, "1", "2")
    with pytest.raises(QueueFull):
        await Relay(path, broker).relay_all()
    (delivery,) = await broker.receive("q", wait_ms=0)
    await broker.ack("q", delivery.receipt)
    assert await Relay(path, broker).relay_all() == 1
    assert await taken(broker) == ["2"]


async def test_an_older_copy_of_the_database_is_noticed(shop, path, broker, tmp_path):
    copy = tmp_path / "copy.db"
    with closing(sqlite3.connect(copy)) as target:
        shop.backup(target)
    write(shop, "1")
    await Relay(path, broker).relay_all()
    with pytest.raises(OutboxOlder):
        await Relay(copy, broker).relay_all()
    with closing(sqlite3.connect(copy)) as restored:
        outbox.new_identity(restored)
        write(restored, "2")
    await Relay(copy, broker).relay_all()
    assert await taken(broker) == ["1", "2"]


async def next_content(broker: Broker) -> str:
    with trio.fail_after(WAIT_SECONDS_MAX):
        (delivery,) = await broker.receive("q", wait_ms=30_000)
    await broker.ack("q", delivery)
    return delivery.content


async def relay_beside(
    path: Path, broker: Broker, body: Callable[[Relay], Awaitable[None]] | None = None
) -> None:
    """Relay until that fails."""
    with trio.fail_after(WAIT_SECONDS_MAX):
        async with Relay(path, broker) as relay:
            if body is not None:
                await body(relay)
            await trio.sleep_forever()


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(WAIT_SECONDS_MAX):
        while not condition():
            await trio.testing.wait_all_tasks_blocked()


@BOTH_JOURNALS
async def test_an_older_copy_is_noticed_while_the_relay_runs(shop, path, broker):
    """It is copied into the same file, and gives the same ids again."""
    with closing(sqlite3.connect(":memory:")) as copy:
        shop.backup(copy)

        async def restore(relay: Relay) -> None:
            write(shop, "1", "2")
            assert [await next_content(broker), await next_content(broker)] == ["1", "2"]
            await until(lambda: left(shop) == 0)
            copy.backup(shop)
            write(shop, "again 1")
            relay.wake()

        with pytest.raises(OutboxOlder):
            await relay_beside(path, broker, restore)
        assert left(shop) == 1
        outbox.new_identity(shop)
        shop.commit()
        assert await Relay(path, broker).relay_all() == 1


@BOTH_JOURNALS
async def test_a_new_identity_is_noticed_while_the_relay_runs(shop, path, broker):
    with closing(sqlite3.connect(":memory:")) as copy:
        shop.backup(copy)
        async with Relay(path, broker):
            write(shop, "1")
            assert await next_content(broker) == "1"
            await until(lambda: left(shop) == 0)
            outbox.new_identity(copy)
            copy.commit()
            copy.backup(shop)
            write(shop, "2")
            assert await next_content(broker) == "2"


@BOTH_JOURNALS
async def test_a_database_that_is_replaced_is_opened_again(shop, path, broker):
    async with Relay(path, broker) as relay:
        write(shop, "1")
        assert await next_content(broker) == "1"
        await until(lambda: left(shop) == 0)
        shop.close()
        for each in path.parent.glob("shop.db*"):
            each.unlink()
        relay.wake()
        await until(lambda: isinstance(relay.last_problem, NoOutbox))
        with closing(sqlite3.connect(path.with_name("other.db"))) as other:
            outbox.create_table(other)
            write(other, "2")
        path.with_name("other.db").rename(path)
        assert await next_content(broker) == "2"
        with closing(sqlite3.connect(path)) as other:
            write(other, "3")
            assert await next_content(broker) == "3"


async def test_what_ends_a_relay_comes_out_of_its_block_as_it_is(path, broker):
    with pytest.raises(NoOutbox):
        await relay_beside(path, broker)


async def test_a_database_without_an_outbox_is_a_mistake(path, broker):
    with pytest.raises(NoOutbox, match="there is no database"):
        await Relay(path, broker).relay_all()
    sqlite3.connect(path).close()
    with pytest.raises(NoOutbox, match="create_table"):
        await Relay(path, broker).relay_all()


async def test_a_database_of_postgresql_needs_no_relay(broker):
    with pytest.raises(NoOutbox, match="PostgreSQL needs no relay") as refused:
        Relay("postgresql://me:hunter2@db/shop", broker)
    assert "hunter2" not in str(refused.value)


async def test_a_write_wakes_the_relay_and_nothing_else_does(shop, path, broker):
    signal = Signal()
    async with Relay(path, broker, watch_with=signal) as relay:
        with trio.fail_after(WAIT_SECONDS_MAX):
            while relay.looks < 2:  # one as it is, one behind all writers
                await trio.testing.wait_all_tasks_blocked()
        write(shop, "1")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert (relay.looks, await taken(broker)) == (2, [])
        signal.changed()
        with trio.fail_after(WAIT_SECONDS_MAX):
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "1"


@BOTH_JOURNALS
async def test_a_commit_is_noticed_by_the_real_watch(shop, path, broker):
    async with Relay(path, broker) as relay:
        for number in range(3):
            write(shop, str(number))
            with trio.fail_after(WAIT_SECONDS_MAX):
                assert (await broker.receive("q", wait_ms=30_000))[0].content == str(number)
        with trio.fail_after(WAIT_SECONDS_MAX):  # its own writes wake it, too, but it comes to rest
            looks = -1
            while looks != relay.looks:
                looks = relay.looks
                await trio.testing.wait_all_tasks_blocked(0.05)


@BOTH_JOURNALS
async def test_a_transaction_that_is_long_in_coming_is_waited_for(shop, path, broker):
    """Its writes are noticed before it commits, and nothing may tell of the commit itself."""
    signal = Signal()
    async with Relay(path, broker, watch_with=signal) as relay:
        with trio.fail_after(WAIT_SECONDS_MAX):
            while relay.looks < 2:
                await trio.testing.wait_all_tasks_blocked()
            outbox.send(shop, "q", "1")
            signal.changed()
            while relay.looks < 3 and relay.last_problem is None:
                await trio.testing.wait_all_tasks_blocked()
            shop.commit()
            assert (await broker.receive("q", wait_ms=30_000))[0].content == "1"


def test_it_works_on_asyncio(shop, path):
    class Lists:
        """Keeps what it gets."""

        def __init__(self) -> None:
            self.got: list[str] = []
            self.arrived = anyio.Event()

        async def outbox_position(self, name):
            return OutboxPosition(0)

        async def relay_outbox(self, name, after, messages):
            self.got += [each.message.content for each in messages]
            self.arrived.set()
            return OutboxPosition(messages[-1].id)

    async def main() -> list[str]:
        source = Lists()
        async with Relay(path, source):
            write(shop, "1")
            with anyio.fail_after(WAIT_SECONDS_MAX):
                await source.arrived.wait()
        return source.got

    assert anyio.run(main) == ["1"]
