"""The rows of a dataset become messages, each once, however often the load is run."""

import json
import shutil

import pytest

pytest.importorskip("pyspark", reason="pyspark is not here (pip install -e '.[spark]')")

from forq_trio.model.errors import InvalidRequest
from pyspark_forq.pipelines.load import load
from pyspark_forq.pipelines.owners import check_owner


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


@pytest.mark.tier2
def test_without_a_content_a_message_is_the_row_as_json(spark, shared, queue, tmp_path) -> None:
    spark.range(3).selectExpr("id", "named_struct('x', id * 2) as deep").write.parquet(str(tmp_path / "rows"))
    assert load(spark, tmp_path / "rows", queue, **shared.options).published == 3
    assert sorted(shared.contents(queue)) == [
        json.dumps({"id": n, "deep": {"x": 2 * n}}, separators=(",", ":")) for n in range(3)
    ]


def test_wrong_columns_and_formats_are_reported(spark, shared, queue, tmp_path) -> None:
    (tmp_path / "one.csv").write_text("text\na\n")
    for given, words in (
        ({"content": "tekst"}, "no column 'tekst'; there are text"),
        ({"columns": {"rank": "text"}}, "a message has no 'rank'"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            load(spark, tmp_path, queue, **shared.options, **given)
    with pytest.raises(InvalidRequest, match="there is no file or directory"):
        load(spark, tmp_path / "odd.bin", queue, **shared.options)
    (tmp_path / "odd.bin").touch()
    with pytest.raises(InvalidRequest, match="cannot be seen from its name"):
        load(spark, tmp_path / "odd.bin", queue, **shared.options)


def test_a_load_of_one_file_has_its_checkpoint_for_itself(spark, shared, queue, tmp_path) -> None:
    """As when it went into a server for tests first: nothing would be sent to the other one, and nothing said."""
    (tmp_path / "other.txt").write_text("not this\n")
    file = tmp_path / "lines [1], {2}.txt"
    file.write_text("one\ntwo\n")
    assert load(spark, file, queue, **shared.options).published == 2
    assert shared.contents(queue) == ["one", "two"]
    place = f"{file}.forq-load/{queue}"
    elsewhere = shared.options | {"url": "http://production:8080", "checkpoint": place}
    with pytest.raises(
        InvalidRequest, match=f"url {shared.url}, not url http://production:8080: use another one"
    ):
        load(spark, file, queue, **elsewhere)
    with pytest.raises(InvalidRequest, match=f"queue {queue}, not queue another: use another one"):
        load(spark, file, "another", **shared.options, checkpoint=place)
    with pytest.raises(InvalidRequest, match=r"dataset .*: use another one"):
        load(spark, tmp_path / "other.txt", queue, **shared.options, checkpoint=place)


def test_a_checkpoint_without_a_batch_is_anybodys(spark, tmp_path) -> None:
    for url in ("http://mistaken", "http://meant"):
        check_owner(spark, str(tmp_path), {"url": url, "queue": None}, log="commits")
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    with pytest.raises(
        InvalidRequest, match="url http://meant, not url http://mistaken, any queue, not queue q: use"
    ):
        check_owner(spark, str(tmp_path), {"url": "http://mistaken", "queue": "q"}, log="commits")


def test_the_owner_of_an_earlier_version_was_in_a_file(spark, tmp_path) -> None:
    about = {"url": "http://meant", "queue": "q"}
    (tmp_path / "forq.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
    check_owner(spark, str(tmp_path), about | {"url": "http://anybodys"}, log="commits")
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    shutil.rmtree(tmp_path / "forq.json")
    (tmp_path / "forq.json").write_text(json.dumps(about, indent=2), encoding="utf-8")
    check_owner(spark, str(tmp_path), about, log="commits")
    with pytest.raises(InvalidRequest, match="url http://meant, not url http://other") as raised:
        check_owner(spark, str(tmp_path), about | {"url": "http://other"}, log="commits")
    assert str(raised.value).endswith(f"remove {tmp_path}/forq.json")
    (tmp_path / "forq.json").unlink()
    check_owner(spark, str(tmp_path), about | {"url": "http://other"}, log="commits")
