"""Whole stories: what one command did, another one finds."""

import json
from pathlib import Path

import pytest

from support.in_process import in_process_server

from .conftest import Forq


def test_a_day_in_the_life_of_a_queue(forq: Forq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    database, backup = str(tmp_path / "forq.db"), str(tmp_path / "backup.db")
    with in_process_server(database=tmp_path / "forq.db") as url:
        monkeypatch.setenv("FORQ_URL", url)
        sent = forq("send", "orders", stdin="".join(f"{number}\n" for number in range(1_500)).encode())
        assert (sent.code, sent.err) == (0, "")
        assert sent.out.startswith("sent 1,500 messages to orders in ")
        assert forq("queues").out.splitlines()[1] == "orders\t1500\t0\t0\t0\t0\t0\tno\tHealthy"
        assert forq("peek", "orders").out.endswith("\t0\n")

        received = forq("receive", "orders", "--max", "150", "--ack")
        assert received.out.splitlines() == [str(number) for number in range(150)]

        receipt, content = forq("receive", "orders").out.rstrip("\n").split("\t")
        assert content == "150"
        assert forq("nack", "orders", receipt, "--delay", "0").out == "1 message nacked\n"
        assert forq("ack", "orders", receipt).code == 5
        assert forq("receive", "nothing").code == 5

        assert forq("check", "--db", database).code == 0
        assert forq("backup", backup, "--db", database).code == 0
        assert "1,350 messages in 1 queue" in forq("verify", backup).out


def test_a_queue_with_settings(connected: Forq, queue: str):
    """What is set holds for the server, is shown in the same words, and can be taken back."""
    forq = connected
    options = (
        *("--lease", "90s", "--max-attempts", "3", "--back-off", "initial=1s,factor=3"),
        *("--order", "lifo"),
    )
    assert forq("queue", "set", queue, *options).out == f"{queue} is a new queue, with 4 settings\n"
    shown = forq("queue", "show", queue).out.splitlines()
    assert "lease\t90s\tset" in shown
    assert "back-off\tinitial=1s,factor=3,max=1h,jitter=0\tset" in shown
    assert f"dead-letter-queue\t{queue}-dlq\tdefault" in shown
    refused = forq("queue", "set", queue, "--dead-letter-queue", queue)
    assert (refused.code, refused.out) == (1, "")
    assert "deadLetterQueue" in refused.err

    forq("queue", "pause", queue)
    forq("send", queue, "--attribute", "colour=red", stdin=b"a\nb\n")
    assert forq("receive", queue).code == 5
    forq("queue", "resume", queue)
    received = json.loads(forq("receive", queue, "--json").out)
    assert (received["content"], received["attributes"]) == ("b", {"colour": "red"})
    receipt = received["receipt"]
    assert forq("extend", queue, receipt).out == "1 message extended\n"
    assert forq("release", queue, receipt).out == "1 message released\n"
    peeked = forq("peek", queue, "-n", "9", "--json").out.splitlines()
    assert [json.loads(line)["content"] for line in peeked] == ["b", "a"]

    assert forq("queue", "purge", queue).code == 2
    assert forq("queue", "delete", queue).code == 1
    assert forq("queue", "purge", queue, "--yes").out == f"2 messages of {queue} removed\n"
    assert forq("queue", "delete", queue).code == 0
    assert queue not in forq("queues").out
    gone = forq("queue", "show", queue)
    assert (gone.code, gone.out) == (5, "")
    assert gone.err == f"forq: there is no queue called {queue} (not_found.queue at queue)\n"
