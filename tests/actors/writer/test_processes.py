"""Processes on one PostgreSQL database make themselves known to each other."""

import os
import socket

import psycopg
import trio

from forq_trio.model import limits
from forq_trio.system import open_broker
from support.actors import until


def change(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)


async def test_two_know_each_other_until_one_ends(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        async with open_broker(empty_tables) as b, trio.open_nursery() as nursery:
            with trio.fail_after(10):
                await until(lambda: all(len(each.known_processes.all()) == 2 for each in (a, b)))
                nursery.start_soon(lambda: b.receive("q", wait_ms=20_000))
                await a.produce("other", "x")
                await until(lambda: b.known_processes.all()[0].last_batch_at is not None)
                await until(lambda: a.known_processes.all()[1].waiting == 1)
                await until(lambda: b.known_processes.all()[0].gate_wait_ms is not None)  # of a's batch
                await until(lambda: a.known_processes.all()[1].lag_ms is not None)  # of b, behind a
            nursery.cancel_scope.cancel()
            first, second = await b.processes()
            assert (first.here, second.here, first.silent) == (False, True, False)
            assert (first.name, first.process) == (socket.gethostname(), os.getpid())
            assert [each.id for each in await a.processes()] == [first.id, second.id]
        with trio.fail_after(10):
            await until(lambda: len(a.known_processes.all()) == 1)


AGED = "UPDATE forq.processes SET heard_at = heard_at - {} WHERE id = 'dead'"


async def test_one_that_was_killed_is_silent_and_then_gone(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        with trio.fail_after(10):
            await until(lambda: len(a.known_processes._heard) == 1)
            (own,) = await a.processes()
            change(
                empty_tables,
                "INSERT INTO forq.processes SELECT 'dead', 'elsewhere', '10.0.0.9', heard_at + 600000,"
                f" replace(state, '{own.id}', 'dead') FROM forq.processes",
            )
            await until(lambda: len(a.known_processes.all()) == 2)
            dead = next(each for each in await a.processes() if each.id == "dead")
            assert (dead.silent, dead.address) == (False, "10.0.0.9")
            change(empty_tables, AGED.format(616_000))
            await until(lambda: any(each.silent for each in a.known_processes.all()))
            change(empty_tables, AGED.format(300_000))
            await until(lambda: len(a.known_processes.all()) == 1)


async def test_a_silent_one_is_replaced_by_its_restart(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        with trio.fail_after(10):
            await until(lambda: len(a.known_processes._heard) == 1)
            (own,) = await a.processes()
            copied = (
                "INSERT INTO forq.processes SELECT 'dead', name, address, heard_at + 600000,"
                f" replace(state, '{own.id}', 'dead') FROM forq.processes"
            )
            change(empty_tables, copied)
            await until(lambda: len(a.known_processes.all()) == 2)
            change(empty_tables, AGED.format(616_000))
            await until(lambda: len(a.known_processes.all()) == 1)


async def test_a_report_that_this_version_cannot_read_is_left_out(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    change_to = (
        "INSERT INTO forq.processes SELECT {0}, 'elsewhere', NULL, heard_at, {1}"
        " FROM forq.processes WHERE id = '{2}'"
    )
    async with open_broker(empty_tables) as a:
        with trio.fail_after(10):
            await until(lambda: len(a.known_processes._heard) == 1)
            (own,) = await a.processes()
            change(empty_tables, change_to.format("'newer'", "'{}'", own.id))
            more = f"replace(replace(state, '{own.id}', 'next'), '{{', '{{\"more\":1,')"
            change(empty_tables, change_to.format("'next'", more, own.id))
            await until(lambda: len(a.known_processes.all()) == 2)
    assert {each.id for each in a.known_processes.all()} == {own.id, "next"}
