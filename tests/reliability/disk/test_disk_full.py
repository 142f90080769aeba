"""A real server on a disk that is really full: a small file system that somebody else fills.

Needs the right to mount one; without it the test says so and is left out.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import trio

from forq_trio.storage.sqlite.files.check import check_file
from support.real_server import SECRET, RealServer, environment, real_server
from support.small_disk import mounted

pytestmark = pytest.mark.process

DISK_MIB = 64
RESERVE_MIB = 8
CONTENT = 60_000 * "x"
MESSAGES = "/api/v1/queues/orders/messages"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        yield disk


def fill(disk: Path) -> Path:
    """What somebody else does: write until nothing is free."""
    filler = disk / "of-somebody-else"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            return filler


def make_client(server: RealServer) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, headers={"X-API-Key": SECRET}, timeout=120, verify=False)


class Shop:
    """What a test knows of the queue, to be compared with what the server says."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.stored = 0
        self.number = 0
        self.accepted = 0

    async def send(self, content: str = CONTENT) -> httpx.Response:
        self.number += 1
        answer = await self._client.post(
            MESSAGES, json={"content": f"{self.number} {content}", "maxAttempts": 1_000}
        )
        self.accepted += answer.status_code == 204
        self.stored += answer.status_code == 204
        return answer

    async def take(self, most: int) -> list[dict]:
        answer = await self._client.post(
            f"{MESSAGES}/receive", json={"max": most, "waitMs": 0, "leaseMs": 600_000}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()["messages"]

    async def settle(self, verb: str, messages: list[dict], **more: object) -> None:
        receipts = [message["receipt"] for message in messages]
        answer = await self._client.post(f"{MESSAGES}/{verb}", json={"receipts": receipts, **more})
        assert answer.status_code == 200, answer.text
        assert all(result["ok"] for result in answer.json()["results"])
        if verb == "ack":
            self.stored -= len(messages)

    async def check(self) -> None:
        answer = await self._client.get("/api/v1/queues/orders")
        assert answer.status_code == 200
        queue = answer.json()
        assert (
            sum(queue[state] for state in ("ready", "delayed", "processing", "failed", "held")) == self.stored
        )

    async def send_until_accepted(self) -> None:
        with trio.fail_after(120):
            while (await self.send("small")).status_code != 204:
                # The server looks for room once a second; a long poll of another queue waits without work for anybody.
                idle = "/api/v1/queues/idle/messages/receive"
                assert (await self._client.post(idle, json={"waitMs": 50})).status_code == 200

    async def send_until_refused(self) -> httpx.Response:
        """Where a checkpoint let the log begin anew, some more fit into it before the disk is asked for more."""
        with trio.fail_after(120):
            while (answer := await self.send()).status_code == 204:
                pass
        return answer


async def live_on_a_full_disk(client: httpx.AsyncClient, disk: Path) -> None:
    shop = Shop(client)
    for _ in range(120):
        assert (await shop.send()).status_code == 204
    (held,) = await shop.take(1)
    filler = fill(disk)
    refused = await shop.send_until_refused()
    assert (refused.status_code, refused.json()) == (503, {"code": "forq.storage_full"})
    assert refused.headers["retry-after"] == "1"
    sasquatch = await client.post("/send", json={"queue_name": "orders", "message_body": CONTENT})
    assert (sasquatch.status_code, sasquatch.json()["error"]["code"]) == (503, "ServiceUnavailable")
    await shop.settle("extend", [held], leaseMs=900_000)
    await shop.settle("ack", [held])
    for _ in range(30):
        messages = await shop.take(3)
        await shop.settle("ack", messages[:2])
        await shop.settle("nack", messages[2:], delayMs=0)
        assert (await shop.send()).json() == {"code": "forq.storage_full"}
    await shop.check()
    assert (await client.get("/healthcheck")).status_code == 204
    filler.unlink()
    await shop.send_until_accepted()
    for _ in range(20):
        assert (await shop.send()).status_code == 204
    await shop.check()
    accepted = f'forq_messages_produced_total{{queue_name="orders",queue_type="regular"}} {shop.accepted}'
    metrics = (await client.get("/metrics", headers={"X-API-Key": 32 * "m"})).text
    assert accepted in metrics
    assert 'forq_rejections_total{cause="storage_full"}' in metrics


async def test_a_full_disk_stops_sends_only_and_there_is_no_need_to_restart(small_disk) -> None:
    database = small_disk / "forq.db"
    settings = {
        "FORQ_DISK_RESERVE_MB": str(RESERVE_MIB),
        "FORQ_METRICS_ENABLED": "true",
        "FORQ_METRICS_AUTH_SECRET": 32 * "m",
    }
    with real_server(database, **settings) as server:
        async with make_client(server) as client:
            await live_on_a_full_disk(client, small_disk)
        assert server.stop() == 0
    assert sorted(os.listdir(small_disk)) == ["forq.db", "forq.db.lock"]
    assert check_file(str(database)).ok


async def fill_fast(shop: Shop, disk: Path) -> int:
    """Send from several connections until each was refused; returns the least free space that was seen."""
    low = os.statvfs(disk).f_bavail

    async def send_all() -> None:
        nonlocal low
        while (await shop.send()).status_code == 204:
            low = min(low, os.statvfs(disk).f_bavail)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(send_all)
    return low * os.statvfs(disk).f_frsize


async def check_it_is_told(server: RealServer, client: httpx.AsyncClient) -> None:
    """By every face: nobody who looks is told that all is well."""
    assert (await client.get("/api/v1/queues/orders/health")).json()["sendsRefused"] == "storage_full"
    assert (await client.get("/healthcheck")).status_code == 204
    assert (await client.get("/healthcheck?verbose")).json()["sendsRefused"] == "storage_full"
    command = [sys.executable, "-m", "forq_trio.cli", "queues", "--url", server.url]
    listed = await trio.run_process(command, env=environment(), capture_stdout=True, capture_stderr=True)
    assert listed.stderr.startswith(b"The disk is full, sends are refused.")
    assert b"\tThe disk is full, sends are refused\n" in listed.stdout
    for more, code in (([], 0), (["--sends"], 1)):  # a restart would free no space
        command = [sys.executable, "-m", "forq_trio.cli", "health", "--url", server.url, *more]
        asked = await trio.run_process(command, check=False, capture_stdout=True, capture_stderr=True)
        assert asked.returncode == code
        assert b" works, but: The disk is full, sends are refused" in asked.stdout + asked.stderr
    metrics = (await client.get("/metrics", headers={"X-API-Key": 32 * "m"})).text
    assert 'forq_sends_refused{cause="storage_full"} 1' in metrics


async def empty(shop: Shop) -> None:
    while messages := await shop.take(50):
        await shop.settle("ack", messages)
    await shop.check()
    assert shop.stored == 0


@pytest.mark.tier2
async def test_a_disk_that_sends_filled_takes_sends_again_when_the_queue_is_empty(small_disk) -> None:
    """The file stays as long as it was: its free pages are what there is, also for the next process."""
    database = small_disk / "forq.db"
    settings = {
        "FORQ_DISK_RESERVE_MB": str(RESERVE_MIB),
        "FORQ_METRICS_ENABLED": "true",
        "FORQ_METRICS_AUTH_SECRET": 32 * "m",
    }
    with real_server(database, **settings) as server:
        async with make_client(server) as client:
            shop = Shop(client)
            low = await fill_fast(shop, small_disk)
            assert low >= RESERVE_MIB * 1024 * 1024 / 2
            assert "forq.db.reserve" in os.listdir(small_disk)
            await check_it_is_told(server, client)
            await empty(shop)
            await shop.send_until_accepted()
            for _ in range(200):
                assert (await shop.send()).status_code == 204
                await shop.settle("ack", await shop.take(2))
            await fill_fast(shop, small_disk)
            await empty(shop)
        assert server.stop() == 0
    with real_server(database, **settings) as server:
        async with make_client(server) as client:
            shop._client = client
            for _ in range(50):
                assert (await shop.send()).status_code == 204
        assert server.stop() == 0
    assert check_file(str(database)).ok


@pytest.mark.tier2
async def test_killed_on_a_full_disk_it_starts_again_and_what_is_stored_can_be_consumed(small_disk) -> None:
    database = small_disk / "forq.db"
    settings = {"FORQ_DISK_RESERVE_MB": str(RESERVE_MIB)}
    with real_server(database, **settings) as server:
        async with make_client(server) as client:
            shop = Shop(client)
            for _ in range(100):
                assert (await shop.send()).status_code == 204
        server.process.kill()
        server.process.wait()
    fill(small_disk)
    with real_server(database, **settings) as server:
        async with make_client(server) as client:
            shop._client = client
            messages = await shop.take(10)
            await shop.settle("ack", messages)
            assert (await shop.send_until_refused()).json() == {"code": "forq.storage_full"}
            await shop.check()
        assert server.stop() == 0
    assert check_file(str(database)).ok


@pytest.mark.tier2
def test_a_disk_that_can_only_be_read_is_refused_at_the_start(small_disk) -> None:
    database = small_disk / "forq.db"
    with real_server(database) as server:
        assert server.stop() == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with (
        pytest.raises(AssertionError, match=r"cannot be read and written by this user"),
        real_server(database),
    ):
        pass
