"""`forq processes`."""

import json
import re

import pytest

from forq_trio import ForqClient
from support.actors import T0

from .conftest import Forq


def test_processes_are_listed(connected: Forq, client: ForqClient, monkeypatch: pytest.MonkeyPatch):
    (process,) = client.processes()
    head, row = connected("processes").out.splitlines()
    assert head == "name\tpid\taddress\tversion\twaiting\tconnections\tgate\tlag\tup\theard"
    assert row.split("\t")[:4] == [f"{process.name}*", str(process.process), "local", process.version]
    (line,) = connected("processes", "--json").out.splitlines()
    assert json.loads(line)["id"] == process.id
    monkeypatch.setenv("COLUMNS", "80")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", connected("processes", terminal=True).out).splitlines()
    assert max(map(len, shown)) <= 80


def test_silent_ones_come_first(monkeypatch: pytest.MonkeyPatch, connected: Forq, client: ForqClient):
    (here,) = client.processes()
    other = {
        "name": "z",
        "here": False,
        "silent": True,
        "heard_at": T0,
        "gate_wait_ms": 0.9,
        "lag_ms": 2_500.0,
    }
    known = [here, type(here)(**{name: getattr(here, name) for name in here.__struct_fields__} | other)]
    monkeypatch.setattr(ForqClient, "processes", lambda _: known)
    _, first, second = connected("processes").out.splitlines()
    assert re.fullmatch(r"z\t\d+\tlocal\t\S+\t0\t\d*\t1 ms\t2 s\t.+\tsilent for .+", first)
    assert second.startswith(f"{here.name}*\t")
