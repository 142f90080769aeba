"""docs/outbox.md: its programs, its command and its statements run, and so does the transaction of docs/postgres.md."""

import re
from pathlib import Path

import psycopg
import pytest

from forq_trio import ForqClient, open_blocking_broker
from forq_trio.cli.commands import run
from support.in_process import in_process_server
from support.programs import run_program
from support.real_server import SECRET

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "outbox.md").read_text(encoding="utf-8")
LINES_MAX = 12


def block(language: str) -> str:
    """The first one of the page."""
    return blocks(PAGE, language)[0]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)


def test_the_page_begins_with_a_short_program_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = block("python")
    assert len([line for line in program.splitlines() if line]) <= LINES_MAX
    done = run_program(program, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        monkeypatch.setenv("FORQ_URL", url)
        assert run(block("sh").partition("#")[0].split()[1:]) == 0
        assert capsys.readouterr().out == "1 message sent.\n"
        (delivery,) = client.receive("orders", wait_ms=0)
        assert (delivery.content, delivery.priority) == ("order 1", 200)


def test_what_the_pages_send_on_postgresql_is_received(tmp_path: Path, database: str) -> None:
    (grant,) = re.findall(r"`(GRANT .*)`", PAGE)
    postgres_page = (ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")
    with open_blocking_broker(database) as broker:
        done = run_program(blocks(PAGE, "python")[1], tmp_path, SHOP_DB_URL=database)
        assert (done.returncode, done.stderr) == (0, "")
        with psycopg.connect(database, autocommit=True) as shop:
            for statements in (*blocks(PAGE, "sql"), *blocks(postgres_page, "sql")):
                shop.execute(statements)
            shop.execute(
                f"DROP ROLE IF EXISTS shop; CREATE ROLE shop; {grant}; DROP OWNED BY shop; DROP ROLE shop"
            )
        received = [
            (each.content, each.priority) for each in broker.receive("orders", max_messages=10, wait_ms=0)
        ]
    assert received == [("order 1", 200), ("order 1", 200), ("tea", 200)]
