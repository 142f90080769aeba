"""Tables and views of SQL: what docs/spark.md shows, and what is refused."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import Row, SparkSession

from pyspark_forq import reason_of
from spark.queries import drained
from spark.support import Server
from support.real_server import SECRET

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
SECTION = PAGE.read_text(encoding="utf-8").split("\n## SQL\n")[1].split("\n## ")[0]
STATEMENTS = [
    statement.strip()
    for block in re.findall(r"```sql\n(.*?)```", SECTION, re.DOTALL)
    for statement in block.split(";\n")
    if statement.strip()
]
_numbers = count()


def contents(shared: Server, queue: str) -> list[str]:
    return [message.content for message in shared.messages(queue)]


class Table:
    """A table of a queue. run: a statement, in which {} is its name."""

    def __init__(self, spark: SparkSession, server: Server, queue: str, options: str = "") -> None:
        self.name = f"table_{next(_numbers)}"
        self._spark = spark
        self.run(f"CREATE TABLE {{}} USING forq OPTIONS (url '{server.url}', queue '{queue}'{options})")

    def run(self, statement: str) -> list[Row]:
        return self._spark.sql(statement.format(self.name)).collect()

    def refusal(self, statement: str) -> str:
        with pytest.raises(Exception, match="forq") as raised:
            self.run(statement)
        return reason_of(raised.value) or str(raised.value)


@pytest.fixture
def table(spark, shared, queue) -> Iterator[Table]:
    table = Table(spark, shared, queue)
    yield table
    table.run("DROP TABLE {}")


def test_the_statements_of_the_page(spark, shared, queue, tmp_path) -> None:
    shared.send(queue, ["first"])
    ran: dict[str, list[Row]] = {}
    for statement in STATEMENTS:
        own = statement.replace("http://localhost:8080", shared.url).replace(
            "queue 'orders'", f"queue '{queue}'"
        )
        ran[statement.split(" USING ")[0]] = spark.sql(own).collect()
    assert [row.content for row in ran[next(each for each in ran if each.startswith("SELECT content"))]] == [
        "first"
    ]
    sent = [(each.content[10:-1], each.priority, each.group, each.state) for each in shared.messages(queue)]
    assert sent[1:] == [
        ("1", 100, None, "ready"),
        ("2", 10, "anna", "ready"),
        ("3", 100, None, "ready"),
        ("4", 100, None, "delayed"),
    ]
    assert ran["SELECT outcome, count(*) AS messages FROM finished GROUP BY outcome"] == []
    assert spark.catalog.tableExists("drain")
    (batch,) = drained(spark.readStream.table("drain"), tmp_path)
    assert len(batch) == 4
    spark.sql("DROP TABLE drain")


def test_a_query_says_more_than_its_table(table, shared, queue) -> None:
    assert "the key is missing or wrong" in table.refusal("SELECT * FROM {} WITH (token 'wrong')")
    for _ in range(2):
        table.run("INSERT INTO {} WITH (txnAppId 'app', txnVersion '7') (content) VALUES ('once')")
    assert contents(shared, queue) == ["once"]


def test_a_table_with_options_for_reads_is_written_all_the_same(spark, shared, queue, tmp_path) -> None:
    table = Table(spark, shared, queue, ", consumer 'sql', includeAttributes 'true', minPartitions '2'")
    table.run("INSERT INTO {} BY NAME SELECT 'a' AS content, map('k', 'v') AS attributes")
    assert "option 'consumer' means nothing for spark.read" in table.refusal("SELECT * FROM {}")
    (batch,) = drained(spark.readStream.table(table.name), tmp_path)
    assert [(row.content, row.attributes) for row in batch] == [("a", {"k": "v"})]
    table.run("DROP TABLE {}")


def test_what_cannot_be_inserted(table, shared, queue) -> None:
    table.run("INSERT INTO {} (content) VALUES ('there')")
    for statement, reason in (
        ("INSERT INTO {} SELECT * FROM {0}", "name the columns that are inserted, as in INSERT INTO"),
        ("INSERT INTO {} BY NAME SELECT 'a' AS content, 'b' AS queue", "column 'queue' names another one"),
        ("INSERT INTO {} (priority) VALUES (1)", "column 'content' is null in a row"),
        ("INSERT OVERWRITE {} BY NAME SELECT 'a' AS content", "a queue cannot be overwritten"),
        ("INSERT INTO {} WITH (txnAppId 'a') (content) VALUES ('b')", "go together"),
    ):
        assert reason in table.refusal(statement.replace("{0}", table.name)), statement
        assert contents(shared, queue) == ["there"], statement


def test_a_table_with_columns_of_its_own_stores_no_options(spark, shared, queue) -> None:
    columns = f"(content STRING) USING forq OPTIONS (url '{shared.url}', queue '{queue}')"
    spark.sql(f"CREATE TABLE columns_of_its_own {columns}")
    with pytest.raises(Exception, match="forq") as raised:
        spark.sql("SELECT * FROM columns_of_its_own").collect()
    assert "stores its options where it names no columns of its own" in (reason_of(raised.value) or "")
    spark.sql("DROP TABLE columns_of_its_own")


def test_tables_that_cannot_be(spark, shared, queue) -> None:
    for options, reason in (
        (", qeue 'a'", "there is no option 'qeue'; did you mean 'queue'?"),
        (f", token '{SECRET}'", "a table stores no token"),
    ):
        with pytest.raises(Exception, match="forq") as raised:
            Table(spark, shared, queue, options)
        assert reason in (reason_of(raised.value) or "")


@pytest.mark.tier2
def test_without_a_line_of_python(java, shared, queue, tmp_path) -> None:
    """Spark's own program for SQL, whose catalog is Hive's."""
    statements = (
        f"CREATE TABLE orders USING forq OPTIONS (url '{shared.url}', queue '{queue}');"
        "INSERT INTO orders (content) VALUES ('four'); SELECT content, state FROM orders;"
    )
    program = Path(pyspark.__file__).parent / "bin" / "spark-sql"
    done = subprocess.run(
        [program, "--master", "local[1]", "--conf", "spark.ui.enabled=false", "-e", statements],
        cwd=tmp_path,
        env=os.environ | {"FORQ_AUTH_SECRET": SECRET, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["four", "ready"]
