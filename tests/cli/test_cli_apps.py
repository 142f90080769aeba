"""`forq apps …`."""

import json

import pytest

from forq_trio import ForqClient, NewMessage
from forq_trio.model.publishing.types import Stage

from .conftest import Forq


@pytest.fixture
def app(client: ForqClient, queue: str) -> str:
    """An app that published version 7 to four queues."""
    queues = [queue, *(f"{queue}-{letter}" for letter in "abc")]
    for each in queues:
        client.stage(each, "s", 0, [NewMessage("x")])
    client.publish(f"app-{queue}", 7, [Stage(each, "s", 1) for each in queues])
    return f"app-{queue}"


def test_apps_are_listed_and_deleted(connected: Forq, queue: str, app: str):
    head, *rows = connected("apps", "list").out.splitlines()
    assert head == "app\tversion\tqueues\tmade by\tpublished"
    (row,) = [row.split("\t") for row in rows if row.startswith(f"{app}\t")]
    assert row[1:4] == ["7", f"{queue}, {queue}-a, {queue}-b and 1 more", "the secret"]
    listed = map(json.loads, connected("apps", "list", "--json").out.splitlines())
    (found,) = [each for each in listed if each["app"] == app]
    assert (found["version"], len(found["queues"]), found["madeBy"]) == (7, 4, "")
    assert connected("apps", "delete", app).out == f"{app} is forgotten\n"
    again = connected("apps", "delete", app)
    assert again.code != 0
    assert "has published nothing" in again.err
    assert app not in connected("apps", "list").out
