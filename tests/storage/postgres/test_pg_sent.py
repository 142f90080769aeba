"""forq.send: a message is in its queue if and only if the transaction of its application commits."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest
from msgspec.json import decode
from psycopg import Connection
from psycopg.types.json import Jsonb

from forq_trio.model import limits
from forq_trio.model.commands import Claim, Configure, Ping, TakeSetAside
from forq_trio.model.errors import TooManyQueues
from forq_trio.model.messages.new_message import OPTIONS, NewMessage
from forq_trio.model.queues.setting_values import Rate
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch
from forq_trio.storage.postgres.engine import PostgresEngine
from support.actors import T0
from support.batches import do, run
from support.words import ack, claim, send

Application = Connection[tuple[object, ...]]


@pytest.fixture
def engine(open_one: Callable[[], PostgresEngine]) -> PostgresEngine:
    return open_one()


@pytest.fixture
def shop(engine, empty_tables: str) -> Iterator[Application]:
    """An application's connection."""
    with psycopg.connect(empty_tables) as connection:
        yield connection


def sends(shop: Application, content: str, queue: str = "q", **options: object) -> None:
    names = "".join(f', "{name}" => %s' for name in options)
    shop.execute(f"SELECT forq.send(%s, %s{names})", (queue, content, *options.values()))


def contents(engine: PostgresEngine, queue: str = "q") -> list[str]:
    return [each.content for each in do(engine, claim(queue=queue, most=100))]


def set_aside(shop: Application) -> list[tuple[object, ...]]:
    return shop.execute("SELECT queue, message, code, reason FROM forq.sent_set_aside ORDER BY id").fetchall()


def test_it_is_sent_with_the_commit_and_never_with_a_rollback(engine, shop):
    sends(shop, "never")
    shop.rollback()
    sends(shop, "a")
    assert contents(engine) == []
    with shop.transaction():
        sends(shop, "undone")
        raise psycopg.Rollback
    sends(shop, "b")
    assert contents(engine) == []
    shop.commit()
    assert [contents(engine), contents(engine)] == [["a", "b"], []]
    assert shop.execute("SELECT count(*) FROM forq.sent").fetchone() == (0,)


def test_each_option_is_kept(engine, shop):
    options = {
        "delay_ms": 60_000,
        "priority": 7,
        "ttl_ms": 5_000,
        "deduplication_id": "once",
        "deduplication_window_ms": 60_000,
        "group": "g",
        "max_attempts": 3,
        "dead_letter_queue": "d",
    }
    assert {*options, "attributes", "process_after"} == OPTIONS.keys()
    sends(shop, "x", attributes=Jsonb({"colour": "grün"}), **options)
    sends(shop, "a second one", deduplication_id="once")
    shop.commit()
    now_ms = time.time_ns() // 1_000_000
    assert run(engine, Ping(), now_ms=now_ms).woken == set()
    columns = "priority, ttl_ms, group_id, max_attempts, dead_letter_queue, attributes, process_after"
    ((*found, process_after),) = shop.execute(f"SELECT {columns} FROM forq.messages").fetchall()
    assert found == [7, 5_000, "g", 3, "d", '{"colour":"grün"}']
    assert now_ms + 50_000 < process_after <= now_ms + 60_000


def test_a_delay_that_has_ended_is_none(engine, shop):
    do(engine, Configure("q", SettingsChange(delay_ms=60_000)))
    sends(shop, "x", delay_ms=1)
    shop.commit()
    (found,) = do(engine, claim(), now_ms=time.time_ns() // 1_000_000 + 60_000)
    assert found.content == "x"


NUMBERS = [name for name, option in OPTIONS.items() if option.kind.name in ("COUNT", "DURATION")]
TEXTS = ["deduplication_id", "group"]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_the_bounds_of_a_send(shop, name):
    option = OPTIONS[name]
    for value in (option.low, option.high):
        sends(shop, "x", **{name: value})
    for value in (option.low - 1, option.high + 1):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=rf"forq\.send: {name} .* not {value}"):
            sends(shop, "x", **{name: value})
        shop.rollback()


@pytest.mark.parametrize("name", TEXTS)
def test_texts_have_the_bounds_of_a_send(shop, name):
    high = OPTIONS[name].high
    sends(shop, "x", **{name: "ü" * high})
    for value in ("", "x" * (high + 1)):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"{name} has 1 to {high} characters"):
            sends(shop, "x", **{name: value})
        shop.rollback()


def test_the_largest_content_is_sent_and_one_byte_more_is_refused(engine, shop):
    largest = "ü" * (limits.CONTENT_BYTES_MAX // 2)
    sends(shop, largest)
    shop.commit()
    assert contents(engine) == [largest]
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="262145 bytes of UTF-8; at most 262144 are"
    ):
        sends(shop, largest + "x")


LONG_NAME = "q" * limits.QUEUE_NAME_LENGTH_MAX
AHEAD = limits.PROCESS_AFTER_AHEAD_MS_MAX


NOT_VALID = (
    ("'a b', 'x'", "queue name"),
    ("'q' || chr(10), 'x'", "queue name"),
    ("'ä', 'x'", "queue name"),
    ("'..', 'x'", "queue name"),
    ("NULL, 'x'", "queue name"),
    (f"'{LONG_NAME}q', 'x'", "queue name"),
    ("'q-dlq', 'x'", "dead-letter queue"),
    ("'q', NULL", "content is text"),
    ("'q', 'x', dead_letter_queue => 'a b'", "dead_letter_queue is not"),
    ("'q', 'x', process_after => 1", "more than 10 seconds in the past"),
    (f"'q', 'x', process_after => (extract(epoch FROM now()) * 1000)::bigint + {AHEAD + 60_000}", "366 days"),
    ("'q', 'x', process_after => (extract(epoch FROM now()) * 1000)::bigint, delay_ms => 1", "exclude"),
    ("'q', 'x', attributes => '[]'", "object of texts"),
    ("""'q', 'x', attributes => '{"a": 1}'""", "object of texts"),
    ("""'q', 'x', attributes => '{"": "a"}'""", "keys have 1 to 64"),
    ("'q', 'x', attributes => jsonb_build_object(repeat('k', 65), 'a')", "keys have 1 to 64"),
    ("'q', 'x', attributes => jsonb_build_object('k', repeat('v', 1025))", "at most 1024"),
    ("'q', 'x', attributes => (SELECT jsonb_object_agg(n, '') FROM generate_series(1, 11) n)", "at most 10"),
)


def test_what_is_not_valid_is_refused_in_the_transaction(shop):
    for arguments, words in NOT_VALID:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"forq.send: .*{words}"):
            shop.execute(f"SELECT forq.send({arguments})")
        shop.rollback()


@pytest.mark.parametrize(
    "arguments",
    [
        r"'q', U&'\D800'",
        r"'q', E'\x00'",
        r"""'q', 'x', attributes => '{"a": "\u0000"}'""",
        r"""'q', 'x', attributes => '{"a": "\ud800"}'""",
    ],
)
def test_what_postgresql_cannot_store_is_refused_in_the_transaction(shop, arguments):
    with pytest.raises(psycopg.Error, match=r"surrogate|0x00|\\u0000"):
        shop.execute(f"SELECT forq.send({arguments})")


def test_the_longest_names_and_attributes_are_taken(engine, shop):
    attributes = {str(n) + "k" * 63: "v" * 1_024 for n in range(10)}
    sends(shop, "x", LONG_NAME, attributes=Jsonb(attributes), dead_letter_queue="")
    shop.commit()
    (delivery,) = do(engine, claim(queue=LONG_NAME))
    assert delivery.attributes == attributes


def test_messages_of_a_full_queue_wait_in_their_order_and_hold_up_no_others(engine, shop, open_one):
    do(engine, Configure("q", SettingsChange(max_messages=1, overflow="reject")))
    for content in ("a", "b", "c"):
        sends(shop, content)
    sends(shop, "d", "other")
    shop.commit()
    (first,) = do(engine, claim())
    assert contents(engine, "other") == ["d"]
    assert run(engine).next_due_ms != T0  # nothing moves until something changes
    result = run(engine, ack(first))
    assert result.next_due_ms == T0  # so the next batch comes at once
    (second,) = do(engine, claim())
    assert (first.content, second.content) == ("a", "b")
    do(engine, Configure("q", SettingsChange(max_messages=2)))
    assert contents(engine) == ["c"]
    assert set_aside(shop) == []
    assert shop.execute("SELECT count(*) FROM forq.sent").fetchone() == (0,)


def test_more_messages_than_a_page_wait_for_a_full_queue(engine, shop):
    do(engine, Configure("q", SettingsChange(max_messages=1, overflow="reject")))
    shop.execute("SELECT forq.send('q', n::text) FROM generate_series(1, 2500) n")
    for content in ("x", "y"):
        sends(shop, content, "other")
    sends(shop, "z", "another")
    shop.commit()
    while run(engine).next_due_ms == T0:
        pass
    assert contents(engine, "other") == ["x", "y"]
    assert contents(engine, "another") == ["z"]
    for number in range(1, 4):
        (one,) = do(engine, claim())
        assert one.content == str(number)
        do(engine, ack(one))
    assert shop.execute("SELECT count(*) FROM forq.sent").fetchone() == (2_497,)


def test_more_full_queues_than_are_remembered_hold_up_all_until_one_takes_messages(engine, shop, monkeypatch):
    monkeypatch.setattr(limits, "SENT_FULL_QUEUES_MAX", 2)
    for queue in ("a", "b"):
        do(engine, Configure(queue, SettingsChange(max_messages=1, overflow="reject")))
        for content in ("1", "2"):
            sends(shop, content, queue)
    shop.commit()
    run(engine)
    sends(shop, "x", "other")
    shop.commit()
    run(engine)
    assert contents(engine, "other") == []
    run(engine, now_ms=T0 + limits.DUE_RETRY_MS)
    (one,) = do(engine, claim(queue="a"))
    do(engine, ack(one))
    assert contents(engine, "other") == ["x"]


@pytest.mark.parametrize("bound", ["QUEUES_MAX", "QUEUES_A_TOKEN_MAX"])
def test_what_would_make_too_many_queues_is_set_aside_and_holds_up_no_others(
    engine, shop, monkeypatch, bound
):
    """One role could make as many queues as there may be, and have the messages of all others wait behind its own."""
    do(engine, send("x", queue="here"))
    monkeypatch.setattr(limits, "SENT_FULL_QUEUES_MAX", 1)
    monkeypatch.setattr(limits, bound, 2 if bound == "QUEUES_A_TOKEN_MAX" else 3)
    for queue in ("a", "b", "c", "d", "here", "a"):
        sends(shop, "y", queue)
    shop.commit()
    run(engine)
    assert [len(contents(engine, queue)) for queue in ("a", "b", "c", "d", "here")] == [2, 1, 0, 0, 2]
    assert [(row[0], row[2]) for row in set_aside(shop)] == [(queue, TooManyQueues.code) for queue in "cd"]
    if bound == "QUEUES_A_TOKEN_MAX":
        do(engine, send("z", queue="another"))


@pytest.mark.parametrize("message", ["nothing", '{"content": 1}', '{"content": "x", "priority": 5000}'])
def test_a_damaged_row_is_set_aside_alone(engine, shop, message):
    sends(shop, "a")
    shop.execute("INSERT INTO forq.sent (queue, message) VALUES ('q', %s)", (message,))
    sends(shop, "b")
    shop.commit()
    assert run(engine).sent_set_aside == 1
    assert contents(engine) == ["a", "b"]
    assert [row[:2] for row in set_aside(shop)] == [("q", message)]


def test_the_latest_that_were_set_aside_are_stored(engine, shop, monkeypatch):
    monkeypatch.setattr(limits, "SENT_SET_ASIDE_MAX", 2)
    for priority in (5_001, 5_002, 5_003):
        message = f'{{"content": "x", "priority": {priority}}}'
        shop.execute("INSERT INTO forq.sent (queue, message) VALUES ('q', %s)", (message,))
        shop.commit()
        run(engine)
    assert [decode(str(row[1]))["priority"] for row in set_aside(shop)] == [5_002, 5_003]


@pytest.fixture
def refused(engine, shop) -> list[int]:
    """The ids of three messages that were set aside."""
    for content in ("a", "b", "c"):
        row = f'{{"content": "{content}", "priority": 5000}}'
        shop.execute("INSERT INTO forq.sent (queue, message) VALUES ('q', %s)", (row,))
    shop.commit()
    assert run(engine).sent_set_aside == 3
    return [id for (id,) in shop.execute("SELECT id FROM forq.sent_set_aside ORDER BY id").fetchall()]


def test_pages_of_what_was_set_aside(engine, refused, monkeypatch):
    with closing(engine.open_reader()) as reader:
        page = reader.set_aside(0, 2)
        assert [(each.id, each.queue, each.message.content) for each in page] == [
            (refused[0], "q", "a"),
            (refused[1], "q", "b"),
        ]
        assert page[0].code.startswith("bad_request.")
        assert "5000" in page[0].reason
        assert [each.id for each in reader.set_aside(refused[1], 2)] == [refused[2]]
        assert reader.set_aside(refused[2], 2) == []
        assert reader.count_set_aside() == (3, refused[2])
        assert reader.sent_figures(10) == (3, 0, None)
        monkeypatch.setattr(limits, "BROWSE_PAGE_BYTES_MAX", 1)
        assert [each.id for each in reader.set_aside(0, 100)] == [refused[0]]


def test_what_was_set_aside_is_sent_again_and_refused_again(engine, refused, shop):
    shop.execute(
        'UPDATE forq.sent_set_aside SET message = \'{"content": "mended"}\' WHERE id = %s', refused[1:2]
    )
    shop.commit()
    assert do(engine, TakeSetAside((refused[1], refused[0], 999_999), again=True)) == tuple(refused[:2])
    assert contents(engine) == ["mended"]
    with closing(engine.open_reader()) as reader:
        assert [each.message.content for each in reader.set_aside(0, 100)] == ["c", "a"]
        again = reader.set_aside(refused[2], 1)[0].id
    assert again > refused[2]


def test_what_was_set_aside_is_deleted(engine, refused):
    assert do(engine, TakeSetAside(tuple(refused[:2]), again=False)) == tuple(refused[:2])
    assert do(engine, TakeSetAside(tuple(refused[:2]), again=False)) == ()
    assert contents(engine) == []
    with closing(engine.open_reader()) as reader:
        assert [each.id for each in reader.set_aside(0, 100)] == refused[2:]


@pytest.mark.parametrize("again", [True, False])
def test_a_batch_takes_no_more_bytes_of_it_than_a_page(engine, refused, monkeypatch, again):
    monkeypatch.setattr(limits, "OUTBOX_PAGE_BYTES_MAX", 1)
    assert do(engine, TakeSetAside(tuple(refused), again)) == (refused[0],)


def test_a_rate_of_the_queue_holds(engine, shop):
    do(engine, Configure("q", SettingsChange(rate=Rate(1, 60_000))))
    for content in ("a", "b"):
        sends(shop, content)
    shop.commit()
    assert contents(engine) == ["a"]
    assert contents(engine) == []
    assert [each.content for each in do(engine, claim(most=100), now_ms=T0 + 60_000)] == ["b"]


def test_another_transaction_that_is_open_holds_nothing_up_and_loses_nothing(engine, shop, empty_tables):
    sends(shop, "earlier number")
    with psycopg.connect(empty_tables) as other:
        sends(other, "later number")
    assert contents(engine) == ["later number"]
    shop.commit()
    assert contents(engine) == ["earlier number"]


def test_transactions_behind_one_another_are_in_their_order(engine, empty_tables):
    for number in range(0, 40, 2):
        with psycopg.connect(empty_tables) as connection:
            sends(connection, str(number))
            sends(connection, str(number + 1))
    assert contents(engine) == [str(number) for number in range(40)]


def test_a_batch_moves_a_page_and_the_next_ones_the_rest(engine, shop):
    shop.execute("SELECT forq.send('q', n::text) FROM generate_series(1, 10000) n")
    shop.commit()
    moved = []
    while (result := run(engine)).next_due_ms == T0:
        moved.append(engine.snapshot().counts["q"].total)
    assert moved == [limits.OUTBOX_PAGE_MAX * (page + 1) for page in range(10)]
    assert result.woken == set()


def test_where_there_are_more_than_a_page_queues_take_turns_and_keep_their_order(engine, shop, monkeypatch):
    monkeypatch.setattr(limits, "OUTBOX_PAGE_MAX", 10)
    for queue in ("a", "b"):
        shop.execute("SELECT forq.send(%s, n::text) FROM generate_series(1, 45) n", (queue,))
    sends(shop, "small", "c")
    shop.commit()
    totals = []
    while True:
        result = run(engine)
        counts = engine.snapshot().counts
        totals.append(tuple(counts[queue].total if queue in counts else 0 for queue in "abc"))
        if result.next_due_ms != T0:
            break
    assert totals[:4] == [(10, 0, 0), (10, 5, 1), (20, 5, 1), (20, 15, 1)]
    assert totals[-1] == (45, 45, 1)
    assert len(totals) <= 16
    for queue in ("a", "b"):
        assert contents(engine, queue) == [str(number) for number in range(1, 46)]


def test_large_messages_for_two_queues_hold_up_no_third(engine, shop):
    largest = "x" * limits.CONTENT_BYTES_MAX
    for queue in ("a", "b"):
        for _ in range(20):
            sends(shop, largest, queue)
    sends(shop, "small", "c")
    shop.commit()
    run(engine)
    assert "c" not in engine.snapshot().counts
    run(engine)
    assert engine.snapshot().counts["c"].total == 1


def test_a_page_is_bounded_in_bytes(engine, shop):
    largest = "x" * limits.CONTENT_BYTES_MAX
    for _ in range(10):
        sends(shop, largest)
    shop.commit()
    assert run(engine).next_due_ms == T0
    assert engine.snapshot().counts["q"].total == limits.OUTBOX_PAGE_BYTES_MAX // limits.CONTENT_BYTES_MAX


def test_nothing_is_moved_while_sends_are_refused(engine, shop):
    sends(shop, "a")
    shop.commit()
    engine.execute_batch(Batch((), T0, moves_staged=False))
    assert engine.snapshot().counts == {}
    run(engine)
    assert engine.snapshot().counts["q"].total == 1


def test_of_two_processes_each_message_is_moved_by_one(open_one, shop):
    a, b = open_one(), open_one()
    got = []
    for number in range(20):
        sends(shop, str(number))
        shop.commit()
        got += contents((a, b)[number % 2])
    assert got == [str(number) for number in range(20)]


def test_a_batch_that_is_undone_moves_nothing(open_one, shop):
    """As of a process that is killed before its commit."""
    a, b = open_one(), open_one()
    sends(shop, "x")
    shop.commit()
    a.execute_batch(Batch((), T0))
    a.connection.close()
    assert contents(b) == ["x"]


def test_a_parked_receiver_is_served_by_the_batch_that_moves(engine, shop):
    sends(shop, "x")
    shop.commit()
    served = run(engine, parked={"q": [Claim("q", 1, 30_000)]}).served
    assert [each.content for _, (each,) in served["q"]] == ["x"]


def test_the_right_to_call_it_is_enough_to_send_and_for_nothing_else(engine, empty_tables, shop):
    shop.execute("DROP ROLE IF EXISTS seller; CREATE ROLE seller LOGIN")
    shop.commit()
    as_seller = empty_tables.replace("postgres@", "seller@", 1)
    with psycopg.connect(as_seller) as seller:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sends(seller, "x")
        seller.rollback()
        shop.execute("GRANT EXECUTE ON FUNCTION forq.send TO seller")
        shop.commit()
        # What the role makes itself is not what the function uses.
        seller.execute("CREATE TEMP TABLE sent (LIKE pg_class); CREATE TEMP TABLE messages (x text)")
        seller.execute("SET search_path = pg_temp, forq")
        sends(seller, "x")
        seller.commit()
        for table in ("sent", "messages", "sent_set_aside", "tokens"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                seller.execute(f"SELECT * FROM forq.{table}")
            seller.rollback()
    assert contents(engine) == ["x"]
    shop.execute("DROP OWNED BY seller; DROP ROLE seller")
    shop.commit()


def test_it_has_the_options_of_a_send(shop):
    ((names,),) = shop.execute("SELECT proargnames FROM pg_proc WHERE oid = 'forq.send'::regproc").fetchall()
    assert names == ["queue", "content", *OPTIONS]
    assert list(NewMessage.__struct_fields__) == ["content", *OPTIONS]


def test_sends_of_the_queue_itself_go_on_beside(engine, shop):
    sends(shop, "committed")
    shop.commit()
    do(engine, send("direct"))
    assert contents(engine) == ["committed", "direct"]


def test_what_waits_is_counted_up_to_a_bound(engine, shop):
    for number in range(3):
        sends(shop, str(number))
    shop.commit()
    with closing(engine.open_reader()) as reader:
        set_aside, waiting, oldest = reader.sent_figures(10)
        assert (set_aside, waiting) == (0, 3)
        assert reader.sent_figures(2) == (0, 2, oldest)
        run(engine)
        assert reader.sent_figures(10) == (0, 0, None)
