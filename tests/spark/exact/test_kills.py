"""Exactly once from end to end, whatever is killed: from a queue to Parquet, from Parquet to a queue, from a queue to a
queue.

A round brings something new for three queries, and then the driver is killed, or the server, at a request that the seed
chooses and a moment of it (gate.py). Another driver goes on after it; a server comes back at once on its file and its
port, and the driver survives that by its retries. In the end the ids and contents are compared. The server has no
history, so its leases move their messages.
"""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic

import pytest

from spark.exact.books import Books
from spark.exact.driver import Driver
from spark.exact.gate import Gate, Trip
from spark.exact.round_trips import take_round
from spark.support import Server, running
from support.effort import count, soak_rounds, soak_seconds
from support.proxy import listening

pytestmark = pytest.mark.process

DONE_SECONDS = 300
ROUND_SECONDS = 60
"""The time that a round may take: a driver that starts takes most of it."""

for_long = pytest.mark.timeout(soak_seconds() + ROUND_SECONDS * soak_rounds())


class Lab:
    """A server behind a gate, and what goes round."""

    def __init__(self, server: Server, gate: Gate, url: str, folder: Path, rng: random.Random) -> None:
        self.server = server
        self.gate = gate
        self.options = server.options | {"url": url}
        self.folder = folder
        self.books = Books(server, folder, rng)
        self._rng = rng

    def arm(self, deed) -> None:
        trip = Trip.drawn(self._rng)
        print(trip)
        self.gate.arm(trip, deed)


@contextmanager
def lab(tmp_path: Path, rng: random.Random) -> Iterator[Lab]:
    database = tmp_path / "forq.db"
    with running(database, FORQ_HISTORY="off") as server:
        assert_leases_move(server, database)
        gate = Gate(server.url)
        with listening(gate) as url:
            yield Lab(server, gate, url, tmp_path / "round", rng)


def assert_leases_move(server: Server, database: Path) -> None:
    """A leased message is in its page alone, as it is not on a server with a history."""
    server.send("moved", ["one"])
    generation = server.client.open_consumer("moved", "k").generation
    server.client.lease("moved", "k", generation, 1)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as file:
        assert file.execute("SELECT sum(messages) FROM moved_pages").fetchone() == (1,)
    server.client.acknowledge("moved", "k", generation, 1)


def rounds(least: int, seconds: float) -> Iterator[int]:
    """At least so many, and as many more as there is time for."""
    end = monotonic() + seconds
    done = 0
    while done < least or monotonic() < end:
        yield done
        done += 1
    print(f"{done} kills")


def kill_drivers(spark, tmp_path: Path, rng: random.Random, least: int, seconds: float = 0.0) -> None:
    drivers: list[Driver] = []
    with lab(tmp_path, rng) as one:
        # Spark itself refuses a checkpoint of which there is state but no offset yet: a first batch that was killed.
        one.books.add()
        take_round(spark, one.options, one.folder)
        try:
            for _ in rounds(least, seconds):
                one.books.add()
                driver = Driver(one.options["url"], one.folder)
                drivers.append(driver)
                whole = rng.random() < 0.5
                one.arm(lambda driver=driver, whole=whole: driver.kill(whole=whole))
                # Where the kill comes a while after its request, the driver may have been quicker.
                assert driver.wait() in (-9, 0), driver.log.read_text()
                assert one.gate.done.wait(DONE_SECONDS)
            take_round(spark, one.options, one.folder)  # by the driver that the other tests have
        finally:
            for driver in drivers:
                driver.close()
        one.books.check(spark)


def kill_servers(spark, tmp_path: Path, rng: random.Random, least: int, seconds: float = 0.0) -> None:
    with lab(tmp_path, rng) as one:

        def kill_and_start() -> None:
            one.server.kill()
            one.server.start()

        for _ in rounds(least, seconds):
            one.books.add()
            one.arm(kill_and_start)
            take_round(spark, one.options, one.folder)
            assert one.gate.done.wait(DONE_SECONDS)
        one.books.check(spark)


@pytest.mark.tier2
def test_drivers_that_are_killed(spark, tmp_path, rng) -> None:
    kill_drivers(spark, tmp_path, rng, count("spark_kills"))


def test_servers_that_are_killed(spark, tmp_path, rng) -> None:
    kill_servers(spark, tmp_path, rng, count("spark_kills"))


@for_long
@pytest.mark.soak
def test_drivers_that_are_killed_for_long(spark, tmp_path, rng) -> None:
    kill_drivers(spark, tmp_path, rng, soak_rounds(), soak_seconds())


@for_long
@pytest.mark.soak
def test_servers_that_are_killed_for_long(spark, tmp_path, rng) -> None:
    kill_servers(spark, tmp_path, rng, soak_rounds(), soak_seconds())
