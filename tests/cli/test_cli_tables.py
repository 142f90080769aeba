"""Tables on a terminal: an id is in one piece however narrow it is, and what is not shown is told."""

from collections.abc import Callable

import pytest
from rich.cells import cell_len

from forq_trio import DeadLetterFilter, ForqClient, NewMessage
from forq_trio.cli.tables import TEXT_WIDTH_MIN, CellKind, Column, print_table

from .conftest import Forq, Outcome, Stream

COLUMNS = (
    Column("sequence", CellKind.NUMBER, spare=2),
    Column("id"),
    Column("reason", CellKind.TEXT),
    Column("last error", CellKind.TEXT, spare=1),
)
ID = "01a203fe-8d4c-77cc-894b-4fa74f98c898"
ROWS = [(1, ID, "it is " + "long " * 9, "表" * 30), (1_000, ID, "-", "a\nb")]

Shown = Callable[[int], tuple[list[str], str]]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """The lines of the table on a terminal of this width, and what is told beside it."""

    def shown(width: int) -> tuple[list[str], str]:
        out, err = Stream(terminal=True), Stream(terminal=True)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", err)
            patch.setenv("COLUMNS", str(width))
            print_table(COLUMNS, ROWS)
        lines = out.text().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
        told = err.text()
        assert max(map(cell_len, told.splitlines()), default=0) <= width
        return lines, " ".join(told.split())

    return shown


def test_an_id_is_never_cut_and_no_row_is_broken(shown: Shown):
    for width in range(20, 220):
        lines, told = shown(width)
        assert sum(ID in line for line in lines) == len(ROWS)
        if lines[0] == "sequence    1":
            assert width < len(ID) + 2 + TEXT_WIDTH_MIN
            continue
        assert len(lines) == 1 + len(ROWS)
        assert max(map(cell_len, lines)) <= width
        out = [column.name for column in COLUMNS if column.name not in lines[0]]
        assert told == (f"Too narrow for: {', '.join(out)}. With --json they are there." if out else "")


def test_what_gives_way_first(shown: Shown):
    assert shown(200)[0][1] == f"       1  {ID}  {ROWS[0][2]}  {ROWS[0][3]}"
    assert shown(70) == (
        [
            "sequence  id                                    reason      last error",
            f"       1  {ID}  it is lon…  表表表表 …",
            f"    1000  {ID}  -           a b",
        ],
        "",
    )
    assert shown(69)[1] == "Too narrow for: last error. With --json they are there."
    assert shown(50)[0][1] == f"{ID}  it is long …"
    assert shown(47)[0] == [
        *("sequence    1", f"id          {ID}", f"reason      {ROWS[0][2]}", f"last error  {ROWS[0][3]}", ""),
        *("sequence    1000", f"id          {ID}", "reason      -", "last error  a b", ""),
    ]


@pytest.fixture
def narrow(connected: Forq, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """A terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *arguments: connected(*arguments, terminal=True)


def test_every_table_of_ids_at_80_columns(narrow: Callable[..., Outcome], client: ForqClient, queue: str):
    long = f"{queue}{'n' * (60 - len(queue))}"
    client.produce_many(long, [NewMessage("words " * 99, max_attempts=1) for _ in range(2)])
    peeked = [message.id for message in client.peek(long, limit=2)]
    assert [line.split()[1] for line in narrow("peek", long, "-n", "2").out.splitlines()[1:]] == peeked
    receipts = [delivery.receipt for delivery in client.receive(long, max_messages=2)]
    client.nack(long, receipts, reason="no stock " * 9)
    dead = f"{long}-dlq"
    ids = [message.id for message in client.search_dead_letters(dead).messages]
    rows = narrow("dead", "list", dead).out.splitlines()
    assert [line.split()[0] for line in rows[2::3]] == ids
    assert [" ".join("".join(rows[place : place + 2]).split()) for place in (3, 6)] == [
        " ".join(["no stock"] * 9)
    ] * 2
    assert max(map(len, rows)) <= 80 + len("\x1b[1m\x1b[0m")
    task = client.start_redrive(dead, DeadLetterFilter(), dry_run=True)
    assert task.id in narrow("dead", "redrives", dead).out
    client.create_token(long, ["produce", "consume", "browse", "redrive"], f"{long[:60]}*")
    for arguments in (("queues",), ("token", "list")):
        assert any(long in line.split() for line in narrow(*arguments).out.splitlines())
