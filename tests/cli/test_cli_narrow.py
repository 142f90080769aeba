"""Every list on narrow terminals with the longest names: a row stays a line, and a name is whole while it can be."""

import re
from collections.abc import Iterator
from hashlib import sha256

import pytest
from rich.cells import cell_len

from forq_trio import DeadLetterFilter, ForqClient, NewMessage, Scope
from forq_trio.cli import look
from forq_trio.cli.progress import progress_bar
from forq_trio.cli.tables import CellKind, Column, print_table, shortened
from forq_trio.model.limits import QUEUE_NAME_LENGTH_MAX
from forq_trio.model.publishing.types import Stage
from forq_trio.model.schedules.types import NewSchedule
from support.in_process import in_process_server
from support.real_server import SECRET
from support.workers import part, report, worker_id

from .conftest import NOWHERE, Forq, Stream

NAME = sha256(b"a queue").hexdigest()
STYLE = re.compile(r"\x1b\[[0-9;]*m")
BELOW = re.compile(r"  \S")
"""A line below a row, with what is too long for it."""
LISTS = (
    ("queues",),
    ("peek", NAME, "-n", "2"),
    ("queue", "show", NAME),
    ("key", "list", NAME),
    ("schedule", "list"),
    ("token", "list"),
    ("workers",),
    ("processes",),
    ("apps", "list"),
    ("consumers", "list"),
    ("consumers", "show", NAME, NAME),
    ("dead", "list", f"{NAME}-dlq"),
    ("dead", "redrives", f"{NAME}-dlq"),
    ("history", "list", NAME),
    ("config",),
)
WITHOUT_NAMES = ("peek", "dead", "history", "processes", "config")
"""Lists of messages, tasks and the like: their ids are never cut."""


@pytest.fixture(scope="module")
def full() -> Iterator[str]:
    """The URL of a server that has something in each list, with names as long as names can be."""
    assert len(NAME) == QUEUE_NAME_LENGTH_MAX
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        client.produce_many(NAME, [NewMessage("words " * 99, max_attempts=1) for _ in range(2)])
        for message in client.receive(NAME, max_messages=2):
            client.nack(NAME, message, reason="no stock " * 9)
        dead = f"{NAME}-dlq"
        client.start_redrive(dead, DeadLetterFilter(), dry_run=True)
        client.produce_many(NAME, [NewMessage("words " * 99) for _ in range(4)])
        client.cancel(NAME, client.peek(NAME)[0].id)
        client.offer(NAME, NAME, "x")
        client.save_schedule(NAME, NewSchedule(queue=NAME, content="m", every="1h"))
        client.create_token(NAME, list(Scope)[:3], f"{NAME[:60]}*")
        client.report_worker(report(1, part(NAME, slots=4, busy=3), name=NAME))
        client.stage(f"{NAME[:-1]}-", "s", 0, [NewMessage("x")])
        client.publish(NAME, 7, [Stage(f"{NAME[:-1]}-", "s", 1)])
        client.open_consumer(NAME, NAME)
        yield url
        client.forget_worker(worker_id(1))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_a_row_is_a_line(
    forq: Forq, full: str, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], width: int
):
    monkeypatch.setenv("FORQ_URL", full)
    monkeypatch.setenv("COLUMNS", str(width))
    piped = forq(*arguments)
    assert piped.code == 0, piped.err
    shown = forq(*arguments, terminal=True)
    lines = STYLE.sub("", shown.out).splitlines()
    rows = [line for line in lines if not BELOW.match(line)]
    assert len(rows) == len(piped.out.splitlines()) > 1
    assert max(map(cell_len, lines)) <= width
    if arguments[0] in WITHOUT_NAMES:
        return
    assert NAME in piped.out
    if width == 120 and arguments != ("consumers", "list"):
        assert NAME in shown.out
    elif NAME not in shown.out:
        assert "…" in shown.out
        assert "whole names. With --json they are there." in " ".join(shown.err.split())


def test_queues_at_80_columns(forq: Forq, full: str, monkeypatch: pytest.MonkeyPatch):
    """The longest name, how many messages are ready, and the verdict."""
    monkeypatch.setenv("FORQ_URL", full)
    monkeypatch.setenv("COLUMNS", "80")
    shown = forq("queues", terminal=True)
    head, *rows = STYLE.sub("", shown.out).splitlines()
    assert head.split()[:2] == ["queue", "ready"]
    assert head.split()[-1] == "health"
    assert shown.err.startswith("Too narrow for: delayed, processing, held, failed, waiting, paused")
    assert len(rows) >= 2


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch):
    """The lines of a table of two names, numbers and a text on a terminal of this width."""
    columns = (
        Column("queue", CellKind.NAME),
        Column("owner", CellKind.NAME),
        Column("ready", CellKind.NUMBER),
        Column("held", CellKind.NUMBER, spare=1),
        Column("health", CellKind.TEXT),
    )

    def table(width: int, queue: str, owner: str, health: str = "Healthy") -> tuple[list[str], str]:
        out, err = Stream(terminal=True), Stream(terminal=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", err)
            patch.setenv("COLUMNS", str(width))
            print_table(columns, [(queue, owner, 1, 2, health)])
        return STYLE.sub("", out.text()).splitlines(), " ".join(err.text().split())

    return table


def test_texts_then_columns_then_names_give_way(table):
    name = "eu.orders." + "x" * 14
    words = "Behind: the oldest waits"
    head = f"{'queue':24}  owner  ready  held  health"
    row = f"{name}  shop       1     2  {words}"
    assert table(80, name, "shop", words) == ([head, row], "")
    assert table(60, name, "shop", words) == ([head, f"{name}  shop       1     2  Behind: the o…"], "")
    lines, told = table(54, name, "shop", words)
    assert lines[1] == f"{name}  shop       1  Behind: the o…"
    assert told == "Too narrow for: held. With --json they are there."
    assert table(50, name, "shop", words)[0][1] == f"{name}  shop       1  Behind: t…"
    lines, told = table(46, name, "shop", words)
    assert lines[1] == "eu.orders.…xxxxxxxxx  shop       1  Behind: t…"
    assert told == "Too narrow for: held, whole names. With --json they are there."
    assert len(table(20, name, "shop", words)[0]) == 6


def test_a_name_is_cut_in_the_middle():
    assert shortened("abc", 3) == "abc"
    assert shortened("abcdef", 5) == "ab…ef"
    assert shortened("abcdef", 4) == "ab…f"
    assert cell_len(shortened("表" * 30, 20)) <= 20


def test_an_event_is_a_line(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    with in_process_server(events=True) as url, ForqClient(url, SECRET) as client:
        sequence = client.produce(NAME, "x").sequence
        monkeypatch.setenv("FORQ_URL", url)
        assert f" {NAME} {sequence}\n" in forq("events").out
        for width, whole in ((60, False), (80, False), (120, True)):
            monkeypatch.setenv("COLUMNS", str(width))
            (line,) = forq("events", terminal=True).out.splitlines()
            assert len(line) < width
            assert (NAME in line) is whole
            assert line.endswith(f"{NAME[-8:]} {sequence}")


def test_a_bar_of_a_long_name_has_space_for_what_is_done(monkeypatch: pytest.MonkeyPatch):
    stream = Stream(terminal=True)
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", stream)
    with progress_bar(NAME, 2) as show:
        show(1, None, "1 of 2 written")
    assert f"{NAME[:13]}…{NAME[-12:]} " in stream.text()
    assert re.search(r" 50% 1 of 2 written \d:\d\d:\d\d", stream.text())


@pytest.fixture(scope="module")
def failing() -> Iterator[str]:
    """The URL of a server with dead letters whose errors are worth reading, and with a queue in trouble."""
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        client.produce_many("orders", [NewMessage(f'{{"order": {n}}}', max_attempts=1) for n in range(2)])
        for message in client.receive("orders", max_messages=2):
            client.nack("orders", message, reason="410 Gone: the hook of customer 4117 does not exist")
        client.pause("orders")
        yield url


@pytest.mark.parametrize(
    ("width", "head"),
    [
        (60, ["id", "age"]),
        (80, ["id", "age", "reason", "content"]),
        (100, ["id", "age", "from", "attempts", "reason", "content"]),
        (120, ["sequence", "id", "age", "from", "attempts", "reason", "content"]),
    ],
)
def test_of_dead_letters_the_whole_error_is_there_at_every_width(
    forq: Forq, failing: str, monkeypatch: pytest.MonkeyPatch, width: int, head: list[str]
):
    """It was cut at 40 characters, also where the terminal had space."""
    error = "410 Gone: the hook of customer 4117 does not exist"
    monkeypatch.setenv("FORQ_URL", failing)
    monkeypatch.setenv("COLUMNS", str(width))
    shown, title, *rows = STYLE.sub("", forq("dead", "list", "orders-dlq", terminal=True).out).splitlines()
    assert re.split(" {2,}", shown.strip()) == head
    assert title == "  last error"
    assert rows[1::2] == [f"  {error}"] * 2
    piped = forq("dead", "list", "orders-dlq").out.splitlines()
    assert [line.split("\t")[6] for line in piped] == ["last error", error, error]


def test_an_attempt_that_only_its_lease_ended_says_so(
    connected: Forq, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch
):
    """Beside "max_attempts_reached" there was nothing."""
    client.produce(queue, "x", max_attempts=1)
    client.receive(queue, lease_ms=0)
    while not client.queue_stats(f"{queue}-dlq").ready:
        pass
    row = connected("dead", "list", f"{queue}-dlq").out.splitlines()[1].split("\t")
    assert row[5:7] == ["max_attempts_reached", "lease ended"]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize(
    "verdict",
    ["Consumers but nothing acked", "Backlog: the oldest message has waited for 3 h, and 2 workers"],
)
def test_the_health_of_a_queue_is_there_at_every_width(
    monkeypatch: pytest.MonkeyPatch, width: int, verdict: str
):
    out = Stream(terminal=True)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", Stream(terminal=True))
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(look._LISTED, [("eu.orders.checkout", 3, 0, 2, 0, 0, 1, "no", verdict)])
    head, *row = [line for line in STYLE.sub("", out.text()).splitlines() if line != "  health"]
    assert row[0].startswith("eu.orders.checkout ")
    assert " ".join(" ".join(row).split()).endswith(verdict)
    assert max(map(len, row)) <= width
    assert head.split()[:2] == ["queue", "ready"]


def test_a_verdict_that_has_no_space_is_below_its_row(monkeypatch: pytest.MonkeyPatch):
    columns = (
        Column("queue", CellKind.NAME),
        Column("ready", CellKind.NUMBER, spare=1),
        Column("health", CellKind.VERDICT, least=15),
    )
    rows = [("orders", 1, "Backlog and no consumers at all"), ("mails", 2, "")]

    def lines(width: int) -> list[str]:
        out = Stream(terminal=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", Stream(terminal=True))
            patch.setenv("COLUMNS", str(width))
            print_table(columns, rows)
        return STYLE.sub("", out.text()).splitlines()

    one_line = ["queue   ready  health", "orders      1  Backlog and no consumers at all", "mails       2"]
    assert lines(46) == one_line
    below = [
        "queue   ready",
        "  health",
        "orders      1",
        "  Backlog and no consumers at all",
        "mails       2",
    ]
    assert lines(45) == below
    assert lines(33) == below
    assert lines(32) == [*below[:3], "  Backlog and no consumers at", "  all", below[-1]]


def test_an_error_is_broken_between_words(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    piped = forq("queues", "--url", NOWHERE)
    assert piped.err.count("\n") == 1
    monkeypatch.setenv("COLUMNS", "40")
    shown = forq("queues", "--url", NOWHERE, terminal=True)
    lines = shown.err.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == piped.err.strip()


def test_so_is_a_long_member_of_a_message(
    forq: Forq, failing: str, client: ForqClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORQ_URL", failing)
    monkeypatch.setenv("COLUMNS", "60")
    with ForqClient(failing, SECRET) as there:
        (id, *_) = [each.id for each in there.peek("orders-dlq")]
    lines = forq("dead", "show", "orders-dlq", id, terminal=True).out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("last error"))
    assert lines[place : place + 2] == [
        "last error       410 Gone: the hook of customer 4117 does",
        "                 not exist",
    ]
    assert max(map(len, lines)) <= 60


def test_a_long_reason_is_below_its_event(forq: Forq, monkeypatch: pytest.MonkeyPatch):
    """It was cut."""
    reason = "no stock, and no supplier who could deliver before the end of the month; "
    with in_process_server(events=True) as url, ForqClient(url, SECRET) as client:
        client.produce("orders", "x")
        client.nack("orders", client.receive("orders"), reason=reason.strip())
        monkeypatch.setenv("FORQ_URL", url)
        monkeypatch.setenv("COLUMNS", "80")
        *_, words, below = forq("events", terminal=True).out.splitlines()
    assert " nacked " in words
    assert "orders 1 attempt 1" in words
    assert below == f"  {reason.strip()}"


def test_a_text_of_which_more_has_to_be_there(monkeypatch: pytest.MonkeyPatch):
    columns = (
        Column("queue", CellKind.NAME),
        Column("ready", CellKind.NUMBER, spare=1),
        Column("error", CellKind.TEXT, spare=2),
        Column("health", CellKind.TEXT, least=20),
    )
    row = ("orders", 1, "it is not there at all", "Backlog and no consumers")

    def line(width: int) -> str:
        out = Stream(terminal=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", Stream(terminal=True))
            patch.setenv("COLUMNS", str(width))
            print_table(columns, [row])
        return STYLE.sub("", out.text()).splitlines()[1]

    assert line(90) == "orders      1  it is not there at all  Backlog and no consumers"
    assert line(51) == "orders      1  it is not…  Backlog and no consumers"
    assert line(47) == "orders      1  it is not…  Backlog and no cons…"
    assert line(44) == "orders  it is not…  Backlog and no consumers"
    assert line(39) == "orders  Backlog and no consumers"
    assert line(28) == "orders  Backlog and no cons…"
    assert line(20) == "orders  Backlog and…"
    assert line(18) == "orders  Backlog a…"
