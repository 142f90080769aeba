"""`forq demo`: what a newcomer sees within a minute, how it ends, and that nothing of it stays."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx
import pytest
import trio
import trio.testing

from forq_trio import ForqClient, open_broker
from forq_trio.demo.goods import FIRST_CUSTOMER, CustomerChange, an_order, chance, content_of
from forq_trio.demo.run import has_screen
from forq_trio.demo.shop import open_shop
from forq_trio.demo.workers import LATEST_MS
from support.processes import WAIT_SECONDS_MAX
from support.running_demo import RunningDemo, running_demo
from support.ui_http import Markup

WAIT_MS = 30_000


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[tuple[dict[str, str], int]]:
    """The environment of somebody with a browser, and a descriptor from which it can be read what that was given."""
    fifo, program = tmp_path / "opened", tmp_path / "browser"
    os.mkfifo(fifo)
    program.write_text(f'#!/bin/sh\necho "$1" > {fifo}\n', encoding="utf-8")
    program.chmod(0o755)
    opened = os.open(fifo, os.O_RDWR)  # for reading alone it would wait for the browser
    try:
        yield {"DISPLAY": ":0", "BROWSER": str(program)}, opened
    finally:
        os.close(opened)


def happened(client: ForqClient, kind: str, queue: str) -> None:
    """Return once this has happened to a message of the queue; each look waits for the next event."""
    after = 0
    while True:
        page = client.events(after, wait_ms=WAIT_MS)
        assert page.next > after, f"nothing happened for {WAIT_MS} ms, and no {kind} in {queue}"
        if any(event.kind == kind and event.queue == queue for event in page.events):
            return
        after = page.next


@pytest.mark.process
def test_everything_is_there_within_a_minute_and_nothing_afterwards(browser) -> None:
    variables, opened = browser
    with running_demo(**variables) as running:
        assert max(map(len, running.printed.splitlines())) <= 80
        assert select.select([opened], [], [], WAIT_SECONDS_MAX)[0]
        assert os.read(opened, 1_000).decode() == f"{running.link}\n"
        with running.client() as client:
            shown(client)
        link_logs_in_once(running)
        folder = running.folder
        assert {path.name for path in folder.iterdir()} >= {"forq.db", "env"}
        assert ((folder / "env").stat().st_mode | folder.stat().st_mode) & 0o077 == 0
        code, out, err = running.ended(signal.SIGINT)
    assert (code, out, err) == (0, "Ended. Everything is removed.\n", "")
    assert not folder.exists()


def shown(client: ForqClient) -> None:
    """What a newcomer is to see."""
    happened(client, "dead_lettered", "webhooks")
    happened(client, "nacked", "webhooks")
    happened(client, "updated", "customers.sync")
    queues = {each.queue: each for each in client.queues()}
    assert {name for name, each in queues.items() if not each.is_dlq} == {
        *("orders", "payments", "shipping", "emails", "webhooks", "customers.sync", "reports", "imports")
    }
    assert queues["webhooks-dlq"].total > 0
    assert (queues["imports"].paused, queues["imports"].ready) == (True, 61)
    assert queues["customers.sync"].delayed > 0
    sales = client.schedule("sales-report")
    assert (sales.schedule.every, sales.runs[-1].result) == ("1min", "by_hand")
    assert {worker.report.name for worker in client.workers()} == {"shop-1", "office-1"}
    assert {run.result for run in client.schedule("price-list").runs} <= {"by_hand", "skipped"}
    happened(client, "acked", "reports")
    assert client.history(queue="orders").messages


def link_logs_in_once(running: RunningDemo) -> None:
    """The metrics are beside it: all that needs no client."""
    origin, token = running.ui_url, running.link.partition("#")[2]
    for status in (303, 403):
        with httpx.Client(base_url=origin, verify=False, timeout=WAIT_SECONDS_MAX) as visitor:
            fields = Markup(visitor.get("/login").text).hidden
            answer = visitor.post("/login", data=fields | {"link": token}, headers={"Origin": origin})
            assert answer.status_code == status
    key = {"X-API-Key": running.key}
    scrape = httpx.get(f"{running.url}/metrics", headers=key, verify=False, timeout=WAIT_SECONDS_MAX)
    assert 'forq_messages_produced_total{queue_name="payments"' in scrape.text


@pytest.mark.process
@pytest.mark.parametrize(
    "second",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.tier2)],
    ids=lambda each: each.name,
)
def test_a_second_signal_leaves_no_file(second) -> None:
    with running_demo("--no-browser", "--seed", "7") as running:
        folder = running.folder
        assert folder.exists()
        code, _, err = running.ended(signal.SIGTERM, second)
    assert code in (0, 130), err  # 0 if it had ended before
    assert (folder.exists(), err.strip()) == (False, "")


@pytest.mark.tier2
@pytest.mark.process
def test_the_printed_commands_can_be_pasted() -> None:
    """Into a shell that knows nothing of `forq` but what the demo tells it."""
    with running_demo("--no-browser") as running:
        pasted = running.printed.partition("In another terminal:\n")[2].partition("\nCtrl-C")[0]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd()}
        done = subprocess.run(
            ["bash", "-ec", pasted], env=env, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX
        )
        assert done.returncode == 0, done.stderr
        assert "It works" in done.stdout
        assert "\nimports\t61\t" in done.stdout


@pytest.mark.parametrize(
    ("variables", "has"),
    [
        ({"DISPLAY": ":0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        ({"WAYLAND_DISPLAY": "wayland-0", "SSH_TTY": "/dev/pts/0"}, False),
        ({"DISPLAY": ""}, False),
        ({}, False),
    ],
)
def test_a_browser_is_opened_only_where_somebody_sees_it(variables, has, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert has_screen(variables) is has


def test_the_same_seed_makes_the_same_shop() -> None:
    def orders(seed: int) -> list[object]:
        rng = Random(f"{seed} shop")
        return [(an_order(rng, number), chance(seed, "card", number)) for number in range(50)]

    assert orders(3) == orders(3)
    assert orders(3) != orders(4)


async def test_whoever_bounds_a_queue_ends_no_shop(mock_clock) -> None:
    async with open_broker("memory:") as broker:
        await broker.configure("orders", max_messages=1)
        await broker.produce("orders", "{}")
        await broker.pause("orders")
        async with open_shop(broker, seed=1):
            await pass_minute(mock_clock)
            assert (await broker.queue_stats("orders")).ready == 1
            await broker.configure("orders", max_messages=None)
            await pass_minute(mock_clock)
            assert (await broker.queue_stats("orders")).ready > 1


async def test_the_end_of_the_shop_waits_for_no_handler_and_what_comes_meanwhile_stays(mock_clock) -> None:
    """No time passes: a handler that slept would never end."""
    key, change = f"customer/{FIRST_CUSTOMER}", content_of(CustomerChange(FIRST_CUSTOMER, ["email"]))
    async with open_broker("memory:") as broker:
        async with open_shop(broker, seed=1):
            await broker.offer("customers.sync", key, change)
            while not (await broker.queue_stats("customers.sync")).processing:
                await trio.testing.wait_all_tasks_blocked()
            await broker.offer("customers.sync", key, change, mode="debounce", delay_ms=LATEST_MS)
            held = await broker.keyed_message("customers.sync", key)
            assert held is not None
            assert held.once_more is not None
        left = await broker.keyed_message("customers.sync", key)
        assert left is not None
        assert (left.message.id == held.message.id, left.once_more) == (False, None)


async def pass_minute(clock: trio.testing.MockClock) -> None:
    for _ in range(12):
        clock.jump(5)
        await trio.testing.wait_all_tasks_blocked()
