"""Calls of the server that are made again until it answers."""

from threading import Thread

import pytest

from forq_trio import ForqClient
from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.options import parsed
from pyspark_forq.server import ask, in_our_words
from spark.support import running


@pytest.mark.tier2
def test_a_call_waits_for_a_server_that_comes_back(tmp_path) -> None:
    with running(tmp_path / "forq.db") as server:
        server.send("q", ["one"])
        options = parsed(server.options | {"queue": "q"}, "read")
        assert ask(options, ForqClient.export, "q").messages[0].content == "one"
        server.kill()
        found = []
        asking = Thread(target=lambda: found.append(ask(options, ForqClient.export, "q", limit=1)))
        asking.start()
        server.start()
        asking.join()
        assert [message.content for message in found[0].messages] == ["one"]


def test_a_server_that_stays_away_is_told_of_in_our_words(tmp_path) -> None:
    options = parsed({"queue": "q", "url": "http://127.0.0.1:1", "token": "t", "retrySeconds": "0"}, "read")
    reason = (
        r"no server can be reached at http://127\.0\.0\.1:1 \(.*\); tried for 0 s \(option retrySeconds\)$"
    )
    with pytest.raises(ForqDataSourceError, match=reason), in_our_words(options):
        ask(options, ForqClient.export, "q")
