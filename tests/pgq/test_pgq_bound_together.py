"""Two processes of ours and one with pgq's statements publish to and consume from one table: each message once."""

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from support.processes import killed_after
from support.real_server import environment

pytestmark = [pytest.mark.process, pytest.mark.tier2]

TESTS = Path(__file__).parents[1]
EACH = 50
# Each begins when all are ready: publishes its own, and consumes whatever is there until all is finished; prints what
# it acknowledged.
OURS = """
import sys
import trio
from forq_trio import open_broker
from forq_trio import NewMessage

url, queue, table, name, each, total = *sys.argv[1:5], *map(int, sys.argv[5:7])

async def publish(broker):
    for start in range(0, each, 10):
        produced = await broker.produce_many(
            queue, [NewMessage('{"from": "%s", "n": %d}' % (name, n)) for n in range(start, start + 10)]
        )
        assert all(one.id for one in produced)

async def consume(broker, number):
    finished = 0
    while True:
        found = await broker.receive(queue, max_messages=7, wait_ms=1_000)
        for index, delivery in enumerate(found):
            if delivery.attempts == 1 and hash(delivery.id) % 5 == 0:
                assert (await broker.nack(queue, delivery, reason="again")).ok
            elif (await broker.ack(queue, delivery)).ok:
                print(delivery.id, flush=True)
        if not found and await is_over(broker):
            return

async def is_over(broker):
    stats = await broker.queue_stats(queue)
    return not stats.total and finished_by_all() == total

def finished_by_all():
    import psycopg
    from psycopg import sql
    with psycopg.connect(url) as connection:
        text = sql.SQL("SELECT count(*) FROM {} WHERE processed_at IS NOT NULL").format(sql.Identifier(table))
        return connection.execute(text).fetchone()[0]

async def main():
    async with open_broker(url) as broker, trio.open_nursery() as nursery:
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        nursery.start_soon(publish, broker)
        for number in range(3):
            nursery.start_soon(consume, broker, number)

trio.run(main)
"""
THEIRS = """
import sys
import psycopg
from pgq.theirs import Theirs

url, queue, table, name, each, total = *sys.argv[1:5], *map(int, sys.argv[5:7])
with psycopg.connect(url, autocommit=True) as connection:
    side = Theirs(connection, table)
    print("ready", flush=True)
    sys.stdin.readline()
    published = 0
    while True:
        if published < each:
            side.publish({"from": name, "n": published}, {})
            published += 1
        found = side.claim(7, most=1_000)
        for row in found:
            if row["consumed_count"] == 1 and hash(str(row["id"])) % 5 == 0:
                side.nack(row["id"], "again")
            else:
                side.ack(row["id"])
                print(row["id"], flush=True)
        (ended,) = side.run("SELECT count(*) AS n FROM {} WHERE processed_at IS NOT NULL")
        if published == each and not found and ended["n"] == total:
            break
"""


def started(stack: ExitStack, program: str, arguments: list[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(PYTHONPATH=f"{TESTS.parent}:{TESTS}"),
    )
    stack.enter_context(process)
    stack.enter_context(killed_after(process))
    return process


async def test_two_processes_of_ours_and_one_of_theirs(broker, queue, pgq_url, table, rows) -> None:
    await broker.configure(queue, max_attempts=1_000)
    programs = {"one": OURS, "two": OURS, "go": THEIRS}
    total = EACH * len(programs)
    with ExitStack() as stack:
        processes = []
        for name, program in programs.items():
            arguments = [pgq_url, queue, table, name, str(EACH), str(total)]
            processes.append(started(stack, program, arguments))
        for process in processes:
            assert await trio.to_thread.run_sync(process.stdout.readline) == "ready\n"
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        outputs = [await trio.to_thread.run_sync(process.communicate) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    acknowledged = [output.split() for output, _ in outputs]
    assert sum(map(bool, acknowledged)) >= 2  # one of them may be so slow that the others leave it nothing
    counted = Counter(id for some in acknowledged for id in some)
    found = rows.all()
    assert counted == Counter(str(row["id"]) for row in found)
    sent = Counter((row["payload"]["from"], row["payload"]["n"]) for row in found)
    assert sent == Counter((name, n) for name in programs for n in range(EACH))
    assert {row["consumed_count"] for row in found} <= {1, 2}
    assert all(row["processed_at"] is not None and row["locked_until"] is None for row in found)
