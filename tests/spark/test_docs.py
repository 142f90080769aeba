"""docs/spark.md and the reference: columns, bounds and scopes are those of the code, and programs run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StructType

import pyspark_forq
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.storage.sqlite.files.check import backup_file
from forq_trio.storage.sqlite.files.restore import restore_file
from pyspark_forq import archive, load, replay
from pyspark_forq.columns import COLUMNS
from pyspark_forq.options import Options
from pyspark_forq.pipelines.archive import log_of
from pyspark_forq.pipelines.report import tables
from pyspark_forq.schemas import schema_of
from spark.queries import drained, stream
from spark.support import running
from support.real_server import environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / "spark.md").read_text(encoding="utf-8")

BEFORE = """. data/env
pip install -e '.[spark]'
mkdir -p data/tour && cd data/tour
"""
SENT = [f'{{"order": {number}, "cents": {number}00}}' for number in range(1, 10_001)]


def rows(heading: str, page: str = PAGE) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = re.split(rf"^##+ {heading}$", page, flags=re.MULTILINE)[1]
    section = re.split(r"^##+ ", section, flags=re.MULTILINE)[0]
    lines = re.findall(r"^\|(.*)\|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split("|")] for line in lines[2:]]


def names(found: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in found]


def columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


@pytest.mark.parametrize(
    ("use", "where"),
    [
        ("read snapshot", ("all", "`includeAttributes`", "`snapshot`", "`includeOrigin`")),
        ("stream consume", ("all", "`includeAttributes`", "`consume`")),
        ("read history", ("all", "`includeAttributes`", "`history`", "`includeOrigin`")),
    ],
)
def test_the_columns_of_messages(use, where) -> None:
    found = [(row[0].strip("`"), row[1]) for row in rows("Columns of messages", REFERENCE) if row[2] in where]
    assert found == columns(
        schema_of(Options(use, include_attributes=True, include_origin="consume" not in use))
    )


def test_the_columns_of_events_and_of_what_is_written() -> None:
    events = [(row[0].strip("`"), row[1]) for row in rows("Columns of events", REFERENCE)]
    assert events == columns(schema_of(Options("read events")))
    written = [(row[0].strip("`"), row[1]) for row in rows("Columns that are written", REFERENCE)]
    assert written == [(column.name, column.type) for column in COLUMNS.values()]


def test_the_tables_of_a_report_are_named() -> None:
    assert all(callable(getattr(tables, name)) for name in names(rows("Tables of events")))
    assert len(rows("Tables of events")) == 7


def test_bounds_are_those_of_the_server() -> None:
    text = " ".join(PAGE.split())
    assert (limits.CONSUMER_LEASES_KEPT_MAX, limits.STAGE_LIFE_MS) == (3, 24 * limits.HOUR_MS)
    for words in (
        f"newest three acknowledged leases, within {limits.CONSUMER_KEPT_BYTES_MAX // limits.MIB} MiB",
        f"{limits.CONSUMER_PAGES_BYTES_MAX // 2**30} GiB for all consumers",
        f"staged pages take {limits.STAGED_BYTES_MAX // 2**30} GiB at most",
        f"at most {limits.APPS_MAX:,} apps",
        f"at most {limits.PUBLISH_STAGES_MAX:,} pairs of a partition and a queue",
        "24 hours after its last page",
    ):
        assert words in text, words


def test_what_the_page_says_is_in_the_metrics() -> None:
    series = set(re.findall(r"`(forq_\w+(?<!_trio))`", PAGE))
    documented = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    assert len(series) >= 3
    assert [name for name in series if f"`{name}`" not in documented] == []


def programs() -> dict[str, str]:
    """By the name that each gives its session."""
    found = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return {re.findall(r'session\("(\w+)"\)', program)[0]: program for program in found}


def test_the_programs_of_the_tutorial(spark, tmp_path, monkeypatch, capsys) -> None:
    """In this process, with this Spark, which has another working directory: its paths are put into `tmp_path`."""
    written = programs()

    def run(name: str) -> str:
        code = written[name].replace('"lake/', f'"{tmp_path}/lake/')
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    with running(tmp_path / "forq.db") as server:
        monkeypatch.setenv("FORQ_URL", server.url)
        server.send("orders", SENT)
        assert run("look").strip() in PAGE
        assert run("drain").strip() in PAGE
        assert server.contents("orders") == []
        run("write")
        run("write")
        assert sorted(server.contents("large-orders")) == sorted(SENT[-10:])


@pytest.mark.tier2
def test_the_programs_about_delta_tables_and_several_streams(spark, tmp_path, monkeypatch, capsys) -> None:
    written = programs()
    with running(tmp_path / "forq.db", FORQ_HISTORY="off") as server:
        monkeypatch.setenv("FORQ_URL", server.url)
        monkeypatch.setenv("TABLE", str(tmp_path / "table"))
        for sent in (SENT[:30], SENT[30:50]):
            server.send("orders", sent)
            exec(compile(written["delta"], "delta", "exec"), {"__name__": "__main__"})
        assert capsys.readouterr().out == "30 orders are in table\n50 orders are in table\n"
        assert server.contents("orders") == []
        server.send("north", SENT[:3])
        server.send("south", SENT[3:5])
        code = written["turn"].replace('f"checkpoints/', f'f"{tmp_path}/checkpoints/')
        exec(compile(code, "turn", "exec"), {"__name__": "__main__"})
        assert sorted(server.contents("all")) == sorted(SENT[:5])


@pytest.mark.tier2
def test_what_is_in_the_lake_stays_whatever_query_begins_anew(spark, tmp_path, monkeypatch, capsys) -> None:
    """Each recovery of the page, one after the other, over the same files: nothing is written over."""
    lake, database, backup = (tmp_path / name for name in ("lake", "forq.db", "backup.db"))
    written = programs()["drain"].replace('"lake/orders"', f'"{lake}"')
    first = '"lake/_checkpoints/orders"'

    def drain(checkpoint: str, consumer: str = "lake") -> None:
        code = written.replace(first, f'"{tmp_path / checkpoint}"').replace(
            '"consumer", "lake"', f'"consumer", "{consumer}"'
        )
        exec(compile(code, "drain", "exec"), {"__name__": "__main__"})

    def found() -> list[str]:
        return sorted(row.content for row in spark.read.parquet(str(lake)).select("content").collect())

    parts = [SENT[start : start + 100] for start in range(0, 500, 100)]
    with running(database) as server:
        monkeypatch.setenv("FORQ_URL", server.url)
        server.send("orders", parts[0])
        drain("one")
        server.send("orders", parts[1])
        drain("one")
        assert found() == sorted(SENT[:200])
        # "Starting over."
        server.send("orders", parts[2])
        drain("two", consumer="lake-2")
        assert found() == sorted(SENT[:300])
        # A consumer that was deleted: with the old checkpoint, and with a new one.
        server.client.delete_consumer("orders", "lake")
        server.send("orders", parts[3])
        drain("three")
        assert found() == sorted(SENT[:400])
        # A restored backup: its numbers are given out again, under the same name.
        backup_file(str(database), str(backup))
        server.send("orders", parts[4][:50])
        drain("three")
        before = found()
        server.kill()
        for each in database.parent.glob("forq.db*"):
            each.unlink()
        restore_file(str(backup), str(database))
        server.start()
        server.send("orders", parts[4][50:])
        with pytest.raises(StreamingQueryException, match="Start with a new checkpoint"):
            drain("three")
        drain("four")
        assert before == sorted(SENT[:450])
        assert found() == sorted(SENT[:500])


@pytest.mark.tier2
@pytest.mark.parametrize("row", range(5))
def test_the_scopes_of_the_page_are_enough(spark, shared, queue, tmp_path, row) -> None:
    """Tokens for one queue, which a log has to be told."""
    uses, words = rows("Operations")[row]
    scopes = [Scope(word) for word in re.findall(r"`(\w+)`", words)]
    token = shared.client.create_token(queue, scopes, queue).token
    shared.send(queue, ["one"])
    (message,) = shared.client.receive(queue)
    shared.client.ack(queue, [message.receipt])
    shared.send(queue, ["two"])
    given = {"url": shared.url, "token": token, "queue": queue}

    def written() -> int:
        spark.createDataFrame([("three",)], "content string").write.format("forq").options(**given).mode(
            "append"
        ).save()
        return len(shared.contents(queue))

    def loaded() -> int:
        (tmp_path / "lines.txt").write_text("three\n", encoding="utf-8")
        return load(spark, tmp_path / "lines.txt", **given).published

    def read(mode: str) -> int:
        return spark.read.format("forq").options(mode=mode, **given).load().count()

    tried = {
        "snapshot": lambda: read("snapshot") == 1,
        "events": lambda: read("events") == 4,
        "history": lambda: read("history") == 1,
        "consume": lambda: len(drained(stream(spark, given | {"consumer": "c"}), tmp_path)) == 1,
        "writes": lambda: written() == 2,
        "load": lambda: loaded() == 1,
        "archive": lambda: archive(spark, tmp_path, **given).rows == {"events": 4, "history": 1},
        "report": lambda: log_of(spark, "events", **given).count() == 4,
        "replay": lambda: replay(spark, source_queue=queue, **given).published == 1,
    }
    for use in re.findall(r"\w+", uses):
        assert tried[use](), use


def test_the_functions_of_pipelines_are_there() -> None:
    found = re.findall(r"`pyspark_forq\.(\w+)`", "".join(cell for row in rows("Pipelines") for cell in row))
    assert found == ["archive", "compact", "report", "replay", "load"]
    assert all(callable(getattr(pyspark_forq, name)) for name in found)


PAGE_SECONDS_MAX = 1_200
"""Twelve programs of Spark, one after the other: four minutes where nothing else runs."""


@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.timeout(PAGE_SECONDS_MAX + 60)
def test_the_page_as_a_person_follows_it(spark, tmp_path) -> None:
    """The tutorial's commands in their order, then the other programs, each in a process of its own.

    The server is there already, and so is Spark.
    """
    spark.range(1)  # there is Java
    written = programs()
    assert list(written) == ["look", "drain", "write", "route", "tables", "delta", "turn"]
    for name, program in written.items():
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
    tutorial = PAGE.split("## Ten minutes\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", tutorial, re.MULTILINE | re.DOTALL)
    routed = re.search(r"^seq .*forq send incoming$", PAGE, re.MULTILINE)
    assert routed is not None
    first, *commands = [text for kind, text in blocks if kind == "sh"]
    shown = [text for kind, text in blocks if not kind]
    assert first == "FORQ_EVENTS=on FORQ_HISTORY=on script/server\n"
    follow = "".join(commands).replace(BEFORE, "")
    assert follow.count("python ") == 4
    with running(tmp_path / "forq.db") as server:
        told = environment(
            FORQ_URL=server.url,
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            PYTHONPATH=str(ROOT),
        )
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{follow}\n{routed[0]}\npython route.py\npython tables.py\n"],
            cwd=tmp_path,
            env=told,
            capture_output=True,
            text=True,
            timeout=PAGE_SECONDS_MAX,
            check=False,
        )
        left = {queue: len(server.contents(queue)) for queue in ("orders", "large-orders", "large", "small")}
    assert run.returncode == 0, run.stderr
    assert [text for text in shown if text not in run.stdout] == []
    assert len(shown) == 2
    assert left == {"orders": 0, "large-orders": 9, "large": 10, "small": 10}
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000
    assert re.search(r"^\| +orders\| +10000\| *10000\|$", run.stdout, re.MULTILINE)
