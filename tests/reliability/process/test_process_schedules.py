"""A server that is killed while runs are due sends no message twice, and none too few."""

from pathlib import Path

import pytest
import trio

from forq_trio import ForqClient, open_broker
from forq_trio.model.schedules.types import NewSchedule
from support.real_server import SECRET, real_server

pytestmark = pytest.mark.process

SCHEDULES = 100
EVERY_MS = 2_000
"""So long that a hundred runs of a schedule, of which the check sees no more, are minutes."""
ROUNDS = 2


async def prepare(url: str) -> None:
    async with open_broker(url) as broker:
        for n in range(SCHEDULES):
            new = NewSchedule(queue="q", content=str(n), every=f"{EVERY_MS}ms", missed="all")
            await broker.save_schedule(f"s{n}", new)


async def check(url: str) -> int:
    """Each schedule has one message for each of its nominal times; returns how many messages there are."""
    async with open_broker(url) as broker:
        contents: dict[str, str] = {}
        after: int | None = 0
        while after is not None:
            page = await broker.export("q", after=after)
            contents |= {message.id: message.content for message in page.messages}
            after = page.next
        noted = []
        for n in range(SCHEDULES):
            details = await broker.schedule(f"s{n}", runs=100)
            runs = details.runs[::-1]
            first = details.schedule.made_at + EVERY_MS
            assert [run.nominal for run in runs] == [first + EVERY_MS * n for n in range(len(runs))]
            assert {run.result for run in runs} == {"sent"}
            assert {contents.get(run.message_id or "", str(n)) for run in runs} == {str(n)}
            noted += [run.message_id for run in runs]
        assert len(set(noted)) == len(noted)
        assert set(contents) <= set(noted)  # this broker goes on with the runs behind the export
        return len(contents)


@pytest.mark.tier2
def test_kills_while_runs_are_due_send_each_once(place):
    url = f"sqlite:///{place}" if isinstance(place, Path) else place
    trio.run(prepare, url)
    for number in range(ROUNDS):
        with real_server(place) as server, ForqClient(server.url, SECRET) as client:
            seen = 0
            while seen < SCHEDULES + number * SCHEDULES // 3:
                seen += len(client.receive("q", max_messages=10, lease_ms=3_600_000))
            server.process.kill()
            server.process.wait()
    assert trio.run(check, url) >= 2 * SCHEDULES
