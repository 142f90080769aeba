"""Consumers of pipelines on the queue's page: shown to all who browse, released by those who may consume."""

import re

from forq_trio.client.types import NewMessage
from forq_trio.model.access import Scope

from .test_ui_queue import admin, login, toast_of

__all__ = ["admin", "login"]
PATH = "/queue/piped/consumers/archive/release"


def make(client) -> None:
    client.produce_many("piped", [NewMessage(content) for content in "abc"])
    client.open_consumer("piped", "archive")
    client.lease("piped", "archive", 1, 1, max_messages=2)


def test_a_lease_is_shown_and_released(admin, client) -> None:
    make(client)
    page = admin.get("/queue/piped")
    assert "Pipeline consumers" in page
    assert re.search(r"<dt>Leased</dt><dd>2, lease 1</dd>", page)
    dialog = admin.get(PATH)
    assert "2 messages of piped go back to the queue" in dialog
    assert "another lease" in toast_of(admin.post(PATH, number="7"))["toast"]
    assert client.consumer("piped", "archive").open_messages == 2
    assert toast_of(admin.post(PATH, number="1"))["toast"] == "Gave back 2 messages of archive"
    assert client.queue_stats("piped").ready == 3
    assert "Release…" not in admin.get("/queue/piped")
    client.delete_consumer("piped", "archive")
    assert admin.http.get(PATH).status_code == 404


def test_who_may_not_consume_sees_it_and_cannot_release_it(login, client) -> None:
    make(client)
    token = client.create_token("looker", scopes=[Scope.BROWSE], queues="piped").token
    looker = login(key=token)
    page = looker.get("/queue/piped")
    assert "archive" in page
    assert "Release…" not in page
    assert looker.http.get(PATH).status_code == 403
    assert looker.post(PATH, number="1").status_code == 403
    client.delete_consumer("piped", "archive")
