"""The rows of a dataset become messages, each once, however often the load is run."""

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from forq_trio.model.errors import InvalidRequest
from forq_trio.spark.pipelines.load import load


def test_files_are_loaded_once_and_later_ones_after_them(spark, shared, queue, tmp_path) -> None:
    place = tmp_path / "orders"
    place.mkdir()
    (place / "one.csv").write_text('text,rank,labels\na,3,"{""k"": ""ü""}"\n,4,\nb,5,\n')
    mapped = {"content": "text", "columns": {"priority": "rank", "attributes": "labels"}}
    first = load(spark, place, queue, **shared.options, **mapped)
    assert (first.read, first.published, first.skipped) == (3, 2, 1)
    assert load(spark, place, queue, **shared.options, **mapped).read == 0
    (place / "two.csv").write_text("text,rank,labels\nc,6,\n")
    assert load(spark, place, queue, **shared.options, **mapped).published == 1
    messages = list(shared.messages(queue))
    assert [(each.content, each.priority) for each in messages] == [("a", 3), ("b", 5), ("c", 6)]
    assert messages[0].attributes == {"k": "ü"}


def test_without_a_content_a_message_is_the_row_as_json(spark, shared, queue, tmp_path) -> None:
    spark.range(3).selectExpr("id", "named_struct('x', id * 2) as deep").write.parquet(str(tmp_path / "rows"))
    assert load(spark, tmp_path / "rows", queue, **shared.options).published == 3
    assert sorted(shared.contents(queue)) == [
        json.dumps({"id": n, "deep": {"x": 2 * n}}, separators=(",", ":")) for n in range(3)
    ]


def test_lines_of_one_file(spark, shared, queue, tmp_path) -> None:
    (tmp_path / "other.txt").write_text("not this\n")
    (tmp_path / "lines [1], {2}.txt").write_text("one\ntwo\n")
    assert load(spark, tmp_path / "lines [1], {2}.txt", queue, **shared.options).published == 2
    assert shared.contents(queue) == ["one", "two"]


def test_wrong_columns_and_formats_are_told(spark, shared, queue, tmp_path) -> None:
    (tmp_path / "one.csv").write_text("text\na\n")
    for given, words in (
        ({"content": "tekst"}, "no column 'tekst'; there are text"),
        ({"columns": {"rank": "text"}}, "a message has no 'rank'"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            load(spark, tmp_path, queue, **shared.options, **given)
    with pytest.raises(InvalidRequest, match="cannot be seen from its name"):
        load(spark, tmp_path / "odd.bin", queue, **shared.options)
