"""A redrive with a rate, whose server is killed in the middle: every message once, and the counts exact."""

import time

import pytest

from forq_trio.client.sync import ForqClient
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.messages.new_message import NewMessage
from support.effort import count
from support.real_server import SECRET, real_server

# In tier 1 tests/actors/dead_letters stops the server before and after each commit of a redrive.
pytestmark = [pytest.mark.process, pytest.mark.tier2]

MESSAGES = 60
RATE = 60
KILLS = count("kills") + 1
SECONDS_MAX = 60.0


def until_moved(client: ForqClient, started: ChangedRedrive, moved: int) -> RedriveInfo:
    """The task once it has moved so many messages, or has ended."""
    end = time.monotonic() + SECONDS_MAX
    task = client.redrive_info(started.queue, started.id)
    while task.moved < moved and task.state == "running":
        assert time.monotonic() < end, task
        task = client.redrive_info(task.queue, task.id)
    return task


def make_dead_letters(client: ForqClient) -> None:
    """Send so many messages that fail at their only attempt, and wait until they are dead letters."""
    client.produce_many("orders", [NewMessage(str(number), max_attempts=1) for number in range(MESSAGES)])
    deliveries = client.receive("orders", max_messages=MESSAGES, wait_ms=0)
    client.nack("orders", [delivery.receipt for delivery in deliveries], delay_ms=0)
    end = time.monotonic() + SECONDS_MAX
    while client.search_dead_letters("orders-dlq").total < MESSAGES:
        assert time.monotonic() < end


@pytest.mark.parametrize("action", ["redrive", "delete"])
def test_killed_in_the_middle_each_message_is_dealt_with_once(tmp_path, action: str) -> None:
    database = tmp_path / "forq.db"
    task: RedriveInfo | None = None
    for kill in range(KILLS + 1):
        with real_server(database) as server, ForqClient(server.url, SECRET) as client:
            if task is None:
                make_dead_letters(client)
                start = client.start_redrive if action == "redrive" else client.start_deletion
                started = start("orders-dlq", rate_per_second=RATE)
                task = client.redrive_info(started.queue, started.id)
            moved = MESSAGES if kill == KILLS else (kill + 1) * MESSAGES // (KILLS + 1)
            before = client.redrive_info(task.queue, task.id)
            assert before.moved >= task.moved
            assert before.searched == before.matched == before.moved
            task = until_moved(client, before, moved)
            if kill < KILLS:
                server.process.kill()
                server.process.wait()
                continue
            task = until_moved(client, task, MESSAGES + 1)
            assert (task.state, task.moved, task.matched, task.searched) == ("done", *3 * (MESSAGES,))
            contents = [each.content for each in client.receive("orders", max_messages=100, wait_ms=0)]
            expected = [str(number) for number in range(MESSAGES)] if action == "redrive" else []
            assert contents == expected
            assert client.search_dead_letters("orders-dlq").messages == []
