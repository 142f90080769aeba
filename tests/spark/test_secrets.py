"""Secrets and certificates by file and by Spark's configuration, and that they are told to nobody else."""

import threading
import time

import pytest

from forq_trio import ForqClient
from forq_trio.model.access.types import Scope
from pyspark_forq import archive, archived, load, reason_of, replay
from pyspark_forq.driver_files import FILE_BYTES_MAX, text_of
from pyspark_forq.errors import ForqDataSourceError, ForqOptionError
from pyspark_forq.options import Options, parsed
from pyspark_forq.server import ask, in_our_words
from pyspark_forq.spark_conf import defaults_of, register
from spark.queries import drained, stream
from spark.support import running
from support.real_server import SECRET


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """A server with TLS, whose authority nobody knows."""
    with running(tmp_path_factory.mktemp("tls") / "forq.db", tls=True) as server:
        yield server


@pytest.fixture
def files(encrypted, queue, tmp_path) -> dict[str, str]:
    """Options of a read or write of one queue by files: a token for this queue only, and the authority."""
    token = encrypted.client.create_token(queue, list(Scope), queue).token
    (tmp_path / "token").write_text(f"{token}\n", encoding="utf-8")
    return {
        "url": encrypted.url,
        "queue": queue,
        "tokenFile": str(tmp_path / "token"),
        "caFile": str(encrypted.ca),
    }


def reason(run) -> str:
    with pytest.raises(Exception, match="forq") as raised:
        run()
    return reason_of(raised.value) or str(raised.value)


def test_files_of_the_driver_are_enough_for_all_tasks(spark, encrypted, queue, files, tmp_path) -> None:
    rows = spark.createDataFrame([("one",), ("two",)], "content string").repartition(2)
    rows.write.format("forq").options(**files).mode("append").save()
    assert sorted(row.content for row in spark.read.format("forq").options(**files).load().collect()) == [
        "one",
        "two",
    ]
    (batch,) = drained(stream(spark, files | {"consumer": "c"}), tmp_path / "checkpoint")
    assert len(batch) == 2
    other = {"queue": f"{queue}-other"}
    assert "the token has not the scope" in reason(
        spark.read.format("forq").options(**files | other).load().collect
    )


def test_a_table_may_name_the_files(spark, encrypted, queue, files) -> None:
    encrypted.send(queue, ["one"])
    options = ", ".join(f"{name} '{value}'" for name, value in files.items())
    spark.sql(f"CREATE TABLE by_files USING forq OPTIONS ({options})")
    assert [row.content for row in spark.sql("SELECT content FROM by_files").collect()] == ["one"]
    spark.sql("DROP TABLE by_files")


def test_the_configuration_of_a_session_is_for_all_reads_and_writes(spark, encrypted, queue, files) -> None:
    """Also for what a pipeline asks itself; a query's own options go before it."""
    other = spark.newSession()
    for name in ("url", "tokenFile", "caFile"):
        other.conf.set(f"spark.forq.{name}", files[name])
    register(other)
    rows = other.createDataFrame([("one",)], "content string")
    rows.write.format("forq").option("queue", queue).mode("append").save()
    found = other.read.format("forq").option("queue", queue)
    assert [row.content for row in found.load().collect()] == ["one"]
    assert "wrong" in reason(found.option("token", "another").load().collect)


@pytest.mark.tier2
def test_pipelines_have_it_from_there_too(spark, encrypted, queue, files, tmp_path) -> None:
    other = spark.newSession()
    for name in ("tokenFile", "caFile"):
        other.conf.set(f"spark.forq.{name}", files[name])
    register(other)
    (tmp_path / "lines.txt").write_text("one\n", encoding="utf-8")
    url = encrypted.url.replace("//", "//somebody:geheim@")
    assert load(other, tmp_path / "lines.txt", queue, url=url).published == 1
    assert archive(other, tmp_path / "archive", url=url, queue=queue).rows["events"] == 1
    assert archive(other, tmp_path / "archive", url=encrypted.url, queue=queue).rows["events"] == 0
    assert archived(other, tmp_path / "archive", "events").count() == 1
    (message,) = encrypted.client.receive(queue)
    encrypted.client.ack(queue, message.receipt)
    asked = {"url": url, "source_queue": queue}
    assert replay(other, queue, **asked).published == 1
    assert "the token has not the scope" in reason(lambda: replay(other, queue, **asked, dead_letters=True))
    shown = [path for path in tmp_path.rglob("*") if path.is_file() and b"geheim" in path.read_bytes()]
    assert shown == []


def test_a_setting_that_does_not_exist_is_an_error(spark) -> None:
    other = spark.newSession()
    other.conf.set("spark.forq.tokenfile", "/somewhere")
    with pytest.raises(ForqOptionError, match=r"no setting spark.forq.tokenfile: did you mean .*tokenFile"):
        defaults_of(other)


@pytest.mark.parametrize(
    ("content", "option", "words"),
    [
        (None, "tokenFile", r"the driver cannot read it \(No such file or directory\)"),
        ("", "tokenFile", "it is empty"),
        ("geheim ä", "tokenFile", "it has characters that are not ASCII"),
        ('"geheim"\n', "tokenFile", "it has quotes around it"),
        ("geheim\x1b", "tokenFile", "it has control characters"),
        ("-" * (FILE_BYTES_MAX + 1), "tokenFile", "longer than 1,048,576 bytes"),
        ("", "caFile", "the file has no certificates in PEM"),
        ("geheim", "caFile", "the file has no certificates in PEM"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path, content, option, words) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ForqOptionError, match=f"option {option}='{path}': .*{words}") as raised:
        parsed({"queue": "q", option: str(path)}, "read")
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("geheim\n", "ends with a line end"),
        ("geheim ", "has blanks at an end"),
        ("'geheim'", "has quotes around it"),
        ("geheim\0", "has control characters"),
    ],
)
def test_tokens_that_no_request_can_carry(token, words, monkeypatch) -> None:
    with pytest.raises(ForqOptionError, match=f"option token: it {words}") as raised:
        parsed({"queue": "q", "token": token}, "read")
    assert "geheim" not in str(raised.value)
    if "\0" not in token:  # which no variable can have
        monkeypatch.delenv("FORQ_AUTH_SECRET", raising=False)
        monkeypatch.setenv("FORQ_TOKEN", token)
        with pytest.raises(ForqOptionError, match=f"FORQ_TOKEN {words}") as raised:
            parsed({"queue": "q"}, "read").secret()
        assert "geheim" not in str(raised.value)


def test_a_token_is_given_in_one_way(tmp_path) -> None:
    (tmp_path / "token").write_text("geheim", encoding="utf-8")
    given = {"queue": "q", "token": "geheim", "tokenFile": str(tmp_path / "token")}
    with pytest.raises(ForqOptionError, match="mean the same"):
        parsed(given, "read")


def test_a_file_that_spark_sends_along_is_found_by_its_name(spark, encrypted, queue, files) -> None:
    """As with spark-submit --files: it is in no directory that the program knows."""
    spark.sparkContext.addFile(files["tokenFile"])
    encrypted.send(queue, ["one"])
    found = spark.read.format("forq").options(**files | {"tokenFile": "token"}).load()
    assert [row.content for row in found.collect()] == ["one"]
    assert parsed({"queue": queue, "tokenFile": "token"}, "read").token is not None


def test_nothing_shows_a_secret(encrypted) -> None:
    url = encrypted.url.replace("//", f"//somebody:{SECRET}@")
    options = Options("read events", url, SECRET, authorities=encrypted.ca.read_text(), driver_token=SECRET)
    assert SECRET not in repr(options).replace(url, "")
    with pytest.raises(Exception, match="refused") as raised, in_our_words(options):
        ask(options, ForqClient.export, "no-such-queue")
    assert SECRET not in str(raised.value)
    with pytest.raises(ForqOptionError, match="url=") as wrong:
        parsed({"queue": "q", "url": f"nowhere://somebody:{SECRET}@host"}, "read")
    assert SECRET not in str(wrong.value)


def test_an_authority_that_is_not_known_is_told_at_once_with_the_option_that_helps(
    encrypted, monkeypatch
) -> None:
    here, sleep = threading.current_thread(), time.sleep

    def pause(seconds: float) -> None:
        """Heartbeats of other tests' readers may pause meanwhile."""
        assert threading.current_thread() is not here, "it is tried again"
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    options = parsed(
        {
            "queue": "q",
            "url": encrypted.url.replace("//", f"//u:{SECRET}@"),
            "token": "t",
            "retrySeconds": "60",
        },
        "read",
    )
    words = r"is not trusted \(.*\); option caFile \(or SSL_CERT_FILE\) can name the authorities to trust$"
    told = pytest.raises(ForqDataSourceError, match=words)
    with told as raised, in_our_words(options):
        ask(options, ForqClient.export, "q")
    assert SECRET not in str(raised.value)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path) -> None:
    path = tmp_path / "token"
    path.write_text("\ufeffgeheim\n", encoding="utf-8")
    assert text_of(str(path)) == "geheim\n"
