"""A compaction whose server is killed in the middle, under load: each message is there once, and compaction can go on.

Messages that are done with and messages that are not take turns in the file, so that pages of these move.
"""

from pathlib import Path

import httpx
import pytest
import trio

from forq_trio.model import limits
from reliability.process.books import Books
from reliability.process.load import BROKEN_OFF, Load, make_client, messages_of
from support.effort import count, many_trials
from support.real_server import RealServer, real_server

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

COMPACTION = "/api/v1/admin/compaction"
KILLS = count("kills")
SENDS = 6
PADDING = " " + 9_000 * "x"
PAGES_EACH = 3
STAYING, GOING = 25, 75


async def make_free_pages(client: httpx.AsyncClient, books: Books) -> None:
    """Send to two queues by turns, and purge the one."""
    for _ in range(SENDS):
        for queue, number, noted in (("stays", STAYING, books.answered), ("goes", GOING, books.acked)):
            contents = [books.next_content(queue) + PADDING for _ in range(number)]
            messages = [{"content": content} for content in contents]
            sent = await client.post(f"{messages_of(queue)}/batch", json={"messages": messages})
            assert sent.status_code == 200, sent.text
            noted.update(contents)
    purged = await client.post("/api/v1/queues/goes/purge")
    assert purged.json() == {"purged": SENDS * GOING}


async def until_given_back(client: httpx.AsyncClient, share: float) -> dict:
    """Begin, and return the compaction once it has given so much of its goal back, or has ended."""
    latest = (await client.post(COMPACTION)).raise_for_status().json()
    while latest["state"] == "running" and latest["givenBackBytes"] <= share * latest["goalBytes"]:
        latest = (await client.get(COMPACTION)).raise_for_status().json()
    return latest


async def compact(url: str, books: Books) -> dict:
    """To the end."""
    async with make_client(url) as client:
        await make_free_pages(client, books)
        return await until_given_back(client, 1)


async def kill_under_load(server: RealServer, books: Books, share: float) -> dict:
    """Compact while others send and receive, and kill the server when that share of the goal is given back."""
    load = Load(server.url, books, lambda sent: sent >= 5)
    async with make_client(server.url) as client, trio.open_nursery() as nursery:
        nursery.start_soon(load.run)
        await load.until_enough()
        while True:
            await make_free_pages(client, books)
            latest = await until_given_back(client, share)
            if latest["state"] == "running":  # else it had ended before we saw it run
                break
        server.process.kill()
    assert load.statuses <= {200, 204}
    return latest


@pytest.mark.tier2
@many_trials
def test_killed_in_the_middle_nothing_is_lost_and_the_next_gives_the_rest_back(tmp_path: Path, rng) -> None:
    database, books = tmp_path / "forq.db", Books()
    for _ in range(KILLS):
        with real_server(database) as server:
            latest = trio.run(kill_under_load, server, books, rng.uniform(0, 0.5))
            server.process.wait()
        assert 0 < latest["givenBackBytes"] < latest["goalBytes"]
        books.check(database, tmp_path / "copy")
    with real_server(database) as server:
        latest = trio.run(compact, server.url, books)
        assert server.stop() == 0
    assert (latest["state"], latest["error"]) == ("done", None)
    assert latest["givenBackBytes"] > SENDS * GOING * len(PADDING)
    books.check(database, tmp_path / "copy")
    stay = sum(content.startswith("stays") for content in books.answered)
    assert database.stat().st_size < stay * PAGES_EACH * limits.LOG_PAGE_BYTES + limits.MIB
