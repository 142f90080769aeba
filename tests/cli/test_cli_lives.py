"""A whole story: what one command did, another one finds."""

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
