"""`forq workers`."""

import json
import re

import pytest

from forq_trio import ForqClient
from support.workers import part, report, worker_id

from .conftest import Forq


def test_workers_are_listed(connected: Forq, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch):
    client.report_worker(report(1, part(queue, slots=4, busy=3), name="mailer"))
    head, row = connected("workers", queue).out.splitlines()
    assert head == "name\thost\tversion\tqueues\tbusy\tslots\ta minute\toldest\theard"
    assert row.split("\t")[:8] == ["mailer", "host", "1.0", queue, "3", "4", "0", ""]
    (line,) = connected("workers", queue, "--json").out.splitlines()
    assert json.loads(line)["report"]["id"] == worker_id(1)
    monkeypatch.setenv("COLUMNS", "80")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", connected("workers", queue, terminal=True).out).splitlines()
    assert max(map(len, shown)) <= 80
    assert "mailer" in shown[1]
    client.forget_worker(worker_id(1))
    outcome = connected("workers", queue)
    assert (outcome.code, outcome.out) == (0, "")
    assert "No worker" in outcome.err
