"""A task over dead letters among three servers on one database: one walks it, and another when that is gone."""

import os
import signal
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from forq_trio.client.sync import ForqClient
from forq_trio.model.dead_letters.redrives import RedriveInfo
from support.real_server import SECRET, RealServer, real_server

from .test_process_redrive import MESSAGES, make_dead_letters, until_moved

pytestmark = [pytest.mark.process, pytest.mark.tier2]

SERVERS = 3
RATE = 10
TAKEN_OVER_SECONDS_MAX = 15.0
"""Five seconds of silence, and a busy machine."""


@pytest.fixture
def servers(database):
    with ExitStack() as stack:
        yield [stack.enter_context(real_server(database, FORQ_EVENTS="on")) for _ in range(SERVERS)]


def client_of(server: RealServer) -> ForqClient:
    return ForqClient(server.url, SECRET)


def goes_on(client: ForqClient, task: RedriveInfo) -> RedriveInfo:
    """The task once it has moved two steps more; whoever walked it before may just have stored its last one."""
    began = time.monotonic()
    found = until_moved(client, client.redrive_info(task.queue, task.id), task.moved + 3)
    assert time.monotonic() - began < TAKEN_OVER_SECONDS_MAX
    return found


def test_another_server_goes_on_and_any_may_change_it(servers):
    first, second, third = servers
    with client_of(first) as client:
        make_dead_letters(client)
        task = until_moved(client, client.start_redrive("orders-dlq", rate_per_second=RATE), 3)
    first.process.kill()
    first.process.wait()
    with client_of(third) as client:
        task = goes_on(client, task)
        os.kill(second.process.pid, signal.SIGSTOP)
        task = goes_on(client, task)  # whether the second one or the third walked it
        os.kill(second.process.pid, signal.SIGCONT)
        task = goes_on(client, task)
    with client_of(second) as client, client_of(third) as other:
        paused = client.pause_redrive(task.queue, task.id)
        assert (paused.state, other.pause_redrive(task.queue, task.id)) == ("paused", paused)
        shown = client.redrive_info(task.queue, task.id)
        assert shown.moved == shown.matched == shown.searched
        assert client.resume_redrive(task.queue, task.id).state == "running"
        received: list[str] = []
        while len(received) < MESSAGES:
            received += [each.id for each in other.receive("orders", max_messages=100, wait_ms=10_000)]
        while (task := client.redrive_info(task.queue, task.id)).state == "running":
            other.receive("orders", wait_ms=100)  # nothing comes any more
        assert (task.state, task.moved, task.matched, task.searched) == ("done", *3 * (MESSAGES,))
        assert len(set(received)) == len(received) == MESSAGES
        moves = Counter(
            each.message_id for each in other.events(limit=10_000).events if each.kind == "requeued"
        )
    assert set(moves.values()) == {1}
    assert len(moves) == MESSAGES
