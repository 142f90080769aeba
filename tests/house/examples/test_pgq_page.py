"""docs/pgq.md and docs/bound-queues.md: their commands and programs run."""

import re
import subprocess
import sys
from pathlib import Path

import psycopg

from forq_trio.cli.commands import run
from forq_trio.pgq import create_table
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment, real_server

ROOT = Path(__file__).parents[3]
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("pgq.md", "bound-queues.md"))
LINES_MAX = 12


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_begins_with_a_short_program_that_runs(database, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORQ_PG_URL", database)
    (command,) = re.findall(r"^forq (.*?) +#", blocks("sh")[0], re.MULTILINE)
    assert run(command.split()) == 0
    program = blocks("python")[0]
    assert len([line for line in program.splitlines() if line]) <= LINES_MAX
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment(FORQ_PG_URL=database, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("bill for tea\n", "")
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            'SELECT payload, processed_at IS NULL, error_detail FROM "Orders/1"'
        ).fetchall()
    assert rows == [({"item": "tea"}, False, None)]


def test_the_index_on_the_page_is_the_one_that_the_command_makes(database) -> None:
    definition = "SELECT indexdef FROM pg_indexes WHERE indexname = 'Orders/1_forq_order_idx'"
    with psycopg.connect(database, autocommit=True) as connection:
        create_table(connection, "Orders/1")
        made = connection.execute(definition).fetchone()
        connection.execute('DROP INDEX "Orders/1_forq_order_idx"')
        connection.execute(blocks("sql")[0])
        assert connection.execute(definition).fetchone() == made


def test_a_server_binds_a_queue_to_the_table_of_the_page(database, monkeypatch, capsys) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        create_table(connection, "Orders/1")
        with real_server(database) as server:
            monkeypatch.setenv("FORQ_URL", server.url)
            monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
            assert run(blocks("sh")[1].split()[1:]) == 0
            assert run(["queue", "show", "orders"]) == 0
            shown = capsys.readouterr()
            assert "orders is bound to the table Orders/1" in shown.err
            assert [line.split()[0] for line in shown.out.splitlines()[-2:]] == ["lease", "max-attempts"]
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", blocks("python")[1]],
                env=environment(FORQ_URL=server.url, PYTHONPATH=str(ROOT)),
                capture_output=True,
                text=True,
                timeout=WAIT_SECONDS_MAX,
                check=True,
            )
            assert (done.stdout, done.stderr) == ("bill for coffee\n", "")
            assert run(["queue", "unbind", "orders"]) == 0
            assert run(["queue", "unbind", "orders"]) != 0
        (row,) = connection.execute(
            'SELECT payload, metadata, processed_at IS NULL, error_detail FROM "Orders/1"'
        ).fetchall()
    assert row == ({"item": "coffee"}, {"region": "eu"}, False, None)
