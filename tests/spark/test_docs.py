"""docs/spark.md: its options, columns, bounds and scopes are those of the code, and its programs run as they stand."""

import re
from contextlib import chdir
from dataclasses import fields

import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from forq_trio.model import limits
from forq_trio.model.access import Scope
from forq_trio.spark.columns import COLUMNS
from forq_trio.spark.errors import ForqOptionError
from forq_trio.spark.options import EVERYWHERE, LOGS, OPTIONS, READ_USES, STREAM_USES, Options, parsed
from forq_trio.spark.pipelines.archive import archive
from forq_trio.spark.pipelines.report import tables
from forq_trio.spark.schemas import schema_of
from spark.support import running
from support.real_server import SECRET

USES = {
    "all": EVERYWHERE,
    "reads": READ_USES | STREAM_USES,
    "streams": STREAM_USES,
    "logs": LOGS,
    "streams, logs": STREAM_USES | LOGS,
    "messages": frozenset({"read snapshot", "read history", "stream consume", "stream history"}),
    "`consume`": frozenset({"stream consume"}),
    "batch writes": frozenset({"write"}),
}
SENT = [f'{{"order": {number}, "cents": {number}00}}' for number in range(1, 10_001)]


@pytest.fixture(scope="module")
def page(root) -> str:
    return (root / "docs" / "spark.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head; marks of code are left out of the first."""
    section = re.split(rf"^##+ {heading}$", page, flags=re.MULTILINE)[1]
    section = re.split(r"^##+ ", section, flags=re.MULTILINE)[0]
    lines = re.findall(r"^\| (`.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def names(found: list[list[str]]) -> list[str]:
    return [row[0].strip("`") for row in found]


def test_every_option_with_its_uses_its_default_and_its_meaning(page) -> None:
    found = rows(page, "Options")
    assert names(found) == [option.name for option in OPTIONS]
    defaults = {field.name: field.default for field in fields(Options)}
    for option, (_, uses, default, meaning) in zip(OPTIONS, found, strict=True):
        assert USES[uses] == option.uses, option.name
        assert meaning.startswith(option.meaning), option.name
        value = defaults.get(option.member)
        if value is not None:
            shown = f"{value:,}" if type(value) is int else f"`{str(value).replace('False', 'false').replace('True', 'true')}`"
            assert default == shown, option.name


def columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema]


@pytest.mark.parametrize(
    ("use", "where"),
    [
        ("read snapshot", ("all", "`includeAttributes`", "`snapshot`")),
        ("stream consume", ("all", "`includeAttributes`")),
        ("read history", ("all", "`includeAttributes`", "`history`")),
    ],
)
def test_the_columns_of_messages(page, use, where) -> None:
    found = [(row[0].strip("`"), row[1]) for row in rows(page, "Messages") if row[2] in where]
    assert found == columns(schema_of(Options(use, include_attributes=True)))


def test_the_columns_of_events_and_of_what_is_written(page) -> None:
    events = [(row[0].strip("`"), row[1]) for row in rows(page, "Events")]
    assert events == columns(schema_of(Options("read events")))
    written = [(row[0].strip("`"), row[1]) for row in rows(page, "What can be written")]
    assert written == [(column.name, column.wanted) for column in COLUMNS.values()]


def test_the_tables_of_a_report_are_named(page) -> None:
    assert all(callable(getattr(tables, name)) for name in names(rows(page, "Tables of what happened")))
    assert len(rows(page, "Tables of what happened")) == 7


def test_bounds_are_those_of_the_server(page) -> None:
    text = " ".join(page.split())
    assert (limits.CONSUMER_LEASES_KEPT_MAX, limits.STAGE_LIFE_MS) == (3, 24 * limits.HOUR_MS)
    for words in (
        f"newest three acknowledged leases, within {limits.CONSUMER_KEPT_BYTES_MAX // limits.MIB} MiB",
        f"{limits.CONSUMER_PAGES_BYTES_MAX // 2**30} GiB for all consumers",
        f"staged pages take {limits.STAGED_BYTES_MAX // 2**30} GiB at most",
        f"newest {limits.PUBLICATIONS_REMEMBERED_MAX:,} apps",
        f"at most {limits.PUBLISH_STAGES_MAX:,} pairs of a partition and a queue",
        f"{limits.CONSUMER_IDLE_SECONDS_DEFAULT:,}, or as it was",
        "24 hours after its last page",
    ):
        assert words in text, words


def test_what_the_page_says_is_in_the_metrics(page, root) -> None:
    series = set(re.findall(r"`(forq_\w+(?<!_trio))`", page))
    documented = (root / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert len(series) >= 3
    assert [name for name in series if f"`{name}`" not in documented] == []


def programs(page: str) -> dict[str, str]:
    """By the name that each gives its session."""
    found = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return {re.findall(r'session\("(\w+)"\)', program)[0]: program for program in found}


def test_every_program_runs(spark, page, tmp_path, monkeypatch, capsys) -> None:
    """In this process, with this Spark, which has another working directory: paths are put into `tmp_path`."""
    written = programs(page)
    assert list(written) == ["look", "drain", "write", "route", "tables"]

    def run(name: str) -> str:
        code = re.sub(r'(f?)"(lake|checkpoints|archive)([/"])', rf'\1"{tmp_path}/\2\3', written[name])
        with chdir(tmp_path):
            exec(compile(code, name, "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    with running(tmp_path / "forq.db") as server:
        monkeypatch.setenv("FORQ_URL", server.url)
        server.send("orders", SENT)
        shown = run("look")
        assert shown.strip() in page
        assert "|ready| 10000|5000500000|" in shown
        assert run("drain") == "10000 orders are in the lake\n"
        server.send("orders", SENT[:1])
        assert run("drain") == "10001 orders are in the lake\n"
        run("write")
        run("write")
        assert sorted(server.contents("large-orders")) == sorted(SENT[-10:])
        server.send("incoming", SENT[-20:])
        run("route")
        assert (len(server.contents("large")), len(server.contents("small"))) == (10, 10)
        archive(spark, tmp_path / "archive", url=server.url, token=SECRET, tables=["events"])
        shown = run("tables")
        assert re.search(r"\| +orders\| +10001\| +10001\|", shown)
        assert re.search(r"\| +orders\| +10001\| +\d+\|", shown)


def test_the_scopes_of_the_page_are_enough_and_needed(spark, shared, page, queue) -> None:
    shared.send(queue, ["one"])
    scopes = {row[0]: set(re.findall(r"\w+", row[1])) for row in rows(page, "Operations")}
    assert scopes
