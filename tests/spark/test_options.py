"""Options: their names, values and defaults, and what is said about wrong ones."""

import pytest

from pyspark_forq.errors import ForqOptionError
from pyspark_forq.options import Options, likely_uses, parsed

QUEUE = {"queue": "q"}
CONSUMER = {"queue": "q", "consumer": "c"}


@pytest.fixture(autouse=True)
def no_token(monkeypatch) -> None:
    monkeypatch.delenv("FORQ_AUTH_SECRET", raising=False)
    monkeypatch.delenv("FORQ_TOKEN", raising=False)


def test_defaults() -> None:
    assert parsed(QUEUE, "read") == Options(use="read snapshot", queue="q")
    assert parsed(CONSUMER, "stream") == Options(use="stream consume", queue="q", consumer="c")
    assert parsed({}, "write") == Options(use="write")


def test_every_option() -> None:
    given = CONSUMER | {
        "URL": "https://forq.example:8443",
        "token": "secret",
        "mode": "consume",
        "maxMessagesPerTrigger": "7",
        "maxbytespertrigger": "8",
        "minPartitions": "9",
        "failOnDataLoss": "False",
        "includeAttributes": "true",
        "idleSeconds": "600",
        "retrySeconds": "0",
    }
    assert parsed(given, "stream") == Options(
        "stream consume",
        "https://forq.example:8443",
        "secret",
        "q",
        "c",
        max_messages_per_trigger=7,
        max_bytes_per_trigger=8,
        min_partitions=9,
        fail_on_data_loss=False,
        include_attributes=True,
        idle_seconds=600,
        retry_seconds=0,
    )
    assert parsed({"mode": "events", "startingOffsets": "12"}, "read").starting_offsets == 12
    written = parsed({"txnAppId": "a", "txnVersion": "0"}, "write")
    assert (written.txn_app_id, written.txn_version) == ("a", 0)


@pytest.mark.parametrize(
    ("given", "use", "reason"),
    [
        ({"ques": "q"}, "read", "there is no option 'ques'; did you mean 'queue'?"),
        ({"zzz": "q"}, "read", "there is no option 'zzz'; there are url, token, tokenFile, caFile, queue"),
        ({}, "read", "option 'queue' has to name the queue of spark.read with mode 'snapshot'"),
        (QUEUE, "stream", "option 'consumer' has to name who reads"),
        (QUEUE | {"mode": "evens"}, "read", "mode='evens': one of .*; did you mean 'events'?"),
        (
            QUEUE | {"mode": "consume"},
            "read",
            "mode 'consume' is for spark.readStream; here it can be snapshot",
        ),
        (QUEUE | {"mode": "snapshot"}, "stream", "mode 'snapshot' is for spark.read; here it can be consume"),
        (
            CONSUMER,
            "read",
            "'consumer' means nothing for spark.read .*'snapshot'; it is for spark.readStream$",
        ),
        (CONSUMER | {"startingOffsets": "1"}, "stream", "'startingOffsets' means nothing for .*'consume'$"),
        (QUEUE | {"mode": "events"}, "write", "option 'mode' means nothing for a write"),
        ({"mode": "events", "includeAttributes": "true"}, "read", "'includeAttributes' means nothing"),
        ({"mode": "events", "startingOffsets": "latest"}, "read", "'latest' is for spark.readStream"),
        (
            {"mode": "events", "startingOffsets": "10", "endingOffsets": "9"},
            "read",
            "endingOffsets=9 is before startingOffsets=10",
        ),
        ({"mode": "events", "startingOffsets": "0"}, "read", "earliest, latest, or the first id"),
        (
            {"mode": "events", "endingOffsets": "latest"},
            "read",
            "endingOffsets='latest': a whole number from 1",
        ),
        ({"mode": "events", "endingOffsets": "9"}, "stream", "option 'endingOffsets' means nothing for"),
        (QUEUE | {"url": "localhost:8080"}, "read", "url='localhost:8080': the URL of a server is wanted"),
        ({"queue": "a/b"}, "read", "option queue='a/b': the queue name is not"),
        (QUEUE | {"minPartitions": "0"}, "read", "minPartitions='0': a whole number from 1 to"),
        (QUEUE | {"minPartitions": "many"}, "read", "minPartitions='many': a whole number from 1 to"),
        (CONSUMER | {"failOnDataLoss": "no"}, "stream", "failOnDataLoss='no': true or false is wanted"),
        ({"txnAppId": "a"}, "write", "'txnAppId' and 'txnVersion' go together"),
        (
            {"asyncProgressTrackingEnabled": "true"},
            "stream write",
            "asyncProgressTrackingEnabled cannot be used",
        ),
    ],
)
def test_what_is_wrong(given, use, reason) -> None:
    with pytest.raises(ForqOptionError, match=reason):
        parsed(given, use)


def test_a_token_is_never_shown() -> None:
    with pytest.raises(ForqOptionError) as raised:
        parsed(QUEUE | {"token": "geheim\n"}, "read")
    assert "geheim" not in str(raised.value)


def test_what_spark_adds_for_a_sink_is_no_option_of_ours() -> None:
    given = QUEUE | {"checkpointlocation": "/somewhere", "queryname": "query"}
    assert parsed(given, "stream write") == Options(use="stream write", queue="q")


def test_the_token_is_the_option_or_that_of_the_process_or_that_of_the_driver(monkeypatch) -> None:
    nothing = parsed(QUEUE, "read")
    with pytest.raises(ForqOptionError, match="set FORQ_AUTH_SECRET"):
        nothing.secret()
    monkeypatch.setenv("FORQ_TOKEN", "token of the driver")
    on_driver = parsed(QUEUE, "read")
    monkeypatch.delenv("FORQ_TOKEN")
    assert on_driver.secret() == "token of the driver"
    monkeypatch.setenv("FORQ_AUTH_SECRET", "secret of the executor")
    assert on_driver.secret() == "secret of the executor"
    assert parsed(QUEUE | {"token": "option"}, "read").secret() == "option"


@pytest.mark.parametrize(
    ("given", "likely"),
    [
        ({}, "read"),
        ({"mode": "events"}, "read"),
        ({"mode": "consume"}, "stream"),
        ({"Consumer": "c"}, "stream"),
    ],
)
def test_which_read_is_meant(given, likely) -> None:
    assert likely_uses(given)[0] == likely
