"""A client that stages and publishes version after version, and a server that is killed at random moments meanwhile."""

import random
import threading

import pytest

from forq_trio import ForqClient, ForqUnreachable, NewMessage, Stage
from support.effort import count, many_trials
from support.real_server import SECRET, real_server

pytestmark = pytest.mark.process

KILLS = 2 * count("kills") - 1
PAGES = 3
A_PAGE = 400
SECONDS_MAX = 0.6


def contents(version: int) -> list[str]:
    return [f"{version}.{number}" for number in range(PAGES * A_PAGE)]


def publish(client: ForqClient, version: int) -> bool:
    """Stage a version and publish it, or do so again; False where it was published before."""
    messages = [NewMessage(content) for content in contents(version)]
    stage = f"version-{version}"
    for page in range(PAGES):
        client.stage("q", stage, page, messages[page * A_PAGE : (page + 1) * A_PAGE])
    published = client.publish("app", version, [Stage("q", stage, PAGES)]).published
    if not published:
        client.discard_stage("q", stage)
    return published


def exported(client: ForqClient) -> list[str]:
    found: list[str] = []
    after: int | None = 0
    while after is not None:
        page = client.export("q", after=after)
        found += [message.content for message in page.messages]
        after = page.next
    return found


@many_trials
def test_every_version_is_in_the_queue_once_and_whole(place) -> None:
    version = 1
    for kill in range(KILLS + 1):
        with real_server(place) as server:
            with ForqClient(server.url, SECRET, retry_seconds=0) as client:
                if kill == KILLS:
                    publish(client, version)
                    assert client.publication("app").version == version
                    expected = [content for each in range(1, version + 1) for content in contents(each)]
                    assert exported(client) == expected
                    assert not publish(client, version)
                    return
                alarm = threading.Timer(random.uniform(0, SECONDS_MAX), server.process.kill)
                alarm.start()
                try:
                    while True:
                        publish(client, version)
                        version += 1
                except ForqUnreachable:
                    alarm.join()
            server.process.wait()
