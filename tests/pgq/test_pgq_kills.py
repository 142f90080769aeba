"""Consumers whose processes are killed and connections cut: nothing is lost, and nothing has two holders."""

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from forq_trio import pgq
from support.processes import killed_after

pytestmark = [pytest.mark.process, pytest.mark.tier2]

KILLS = 6
PUBLISH_EVERY_SECONDS = 0.1
# A handler writes when it began and ended; it takes long enough to be killed within.
PROGRAM = """
import os, random, sys
import anyio, psycopg
from forq_trio.pgq import Consumer
from forq_trio.worker import Job

consumer = Consumer(sys.argv[1], polling=0.1, attempts_max=0)
log = psycopg.connect(sys.argv[1], autocommit=True)

def write(what, job):
    log.execute("INSERT INTO log VALUES (clock_timestamp(), %s, %s, %s)", (what, job.id, job.attempt))

@consumer.on(sys.argv[2], lease=1, concurrency=5)
async def handle(payload: dict, job: Job) -> None:
    write("began", job)
    print("began", flush=True)
    with anyio.move_on_after(random.random() / 20):  # the work takes so long
        await anyio.sleep_forever()
    write("ended", job)

consumer.run()
"""


def test_nothing_is_lost_and_nothing_has_two_holders(
    pgq_url, connection, rows, table, rng: random.Random
) -> None:
    connection.execute("CREATE TABLE log (at timestamptz, what text, id uuid, attempt int)")
    done = threading.Event()
    published: list[UUID] = []

    def publish() -> None:
        with psycopg.connect(pgq_url, autocommit=True) as own:
            while not done.wait(PUBLISH_EVERY_SECONDS):
                published.extend(pgq.publish(own, table, *[pgq.Message({})] * 20))

    publisher = threading.Thread(target=publish)
    publisher.start()
    program = [sys.executable, "-c", PROGRAM, pgq_url, table]
    with ExitStack() as stack:
        stack.callback(done.set)

        def start() -> subprocess.Popen[bytes]:
            process = stack.enter_context(
                subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            )
            stack.callback(process.kill)
            stack.enter_context(killed_after(process))
            return process

        processes = [start(), start()]
        for _ in range(KILLS):
            victim = rng.randrange(2)
            stdout = processes[victim].stdout
            assert stdout is not None
            for _ in range(rng.randrange(1, 20)):
                assert stdout.readline() == b"began\n"
            os.kill(processes[victim].pid, signal.SIGKILL)
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'forq pgq' LIMIT 2"
            )
            processes[victim] = start()
        done.set()
        publisher.join()
        left = sql.SQL("SELECT count(*) FROM {} WHERE processed_at IS NULL").format(rows.table)
        while connection.execute(left).fetchone() != (0,):
            connection.execute("SELECT pg_sleep(0.05)")
    held = """
        SELECT count(*) FROM log AS a JOIN log AS b ON a.id = b.id AND a.attempt < b.attempt
        WHERE a.what = 'ended' AND b.what = 'began' AND b.at < a.at
    """
    assert connection.execute(held).fetchone() == (0,)
    ended = connection.execute("SELECT DISTINCT id FROM log WHERE what = 'ended'")
    assert {id for (id,) in ended} == set(published)
    assert {row["error_detail"] for row in rows.all()} == {None}
