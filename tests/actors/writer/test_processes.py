"""Processes on one PostgreSQL database make themselves known to each other."""

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
import trio

from forq_trio.jobs.board import redrives_report
from forq_trio.jobs.runs import JobReport
from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.results.types import KeptResult
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import System, open_broker, open_system
from support.actors import until
from support.processes import WAIT_SECONDS_MAX


@asynccontextmanager
async def a_system(database: str) -> AsyncIterator[System]:
    engine = await trio.to_thread.run_sync(open_engine, database, EngineSettings(), "normal")
    async with open_system(engine) as system:
        yield system


def change(database: str, statement: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(statement)


async def test_two_know_each_other_until_one_ends(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        async with open_broker(empty_tables) as b, trio.open_nursery() as nursery:
            with trio.fail_after(WAIT_SECONDS_MAX):
                await until(lambda: all(len(each.known_processes.all()) == 2 for each in (a, b)))
                nursery.start_soon(lambda: b.receive("q", wait_ms=30_000))
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
        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: len(a.known_processes.all()) == 1)


@pytest.mark.tier2
async def test_each_knows_which_of_them_ran_a_job_last_and_which_walks_a_task(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    title = redrives_report([]).title
    async with a_system(empty_tables) as a, a_system(empty_tables) as b:
        first, second = a.broker.known_processes, b.broker.known_processes

        def sweep_at(system: System) -> JobReport:
            return next(each for each in system.reports() if each.name == "sweep.expired")

        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: all(len(each.all()) == 2 for each in (first, second)))
            here = f"{socket.gethostname()} {os.getpid()}"
            assert (sweep_at(a).last_run_at, sweep_at(a).ran_on) == (None, "")
            await b.jobs.run_now("sweep.expired")
            await until(lambda: sweep_at(a).last_run_at is not None)
            by_b = sweep_at(a)
            assert (by_b.result, by_b.failed, by_b.ran_on) == ("nothing to do", False, here)
            assert by_b.last_run_at == pytest.approx(sweep_at(b).last_run_at, abs=50)
            await a.jobs.run_now("sweep.expired")
            assert sweep_at(a).last_run_at >= by_b.last_run_at
            await until(lambda: sweep_at(b).last_run_at > by_b.last_run_at)
            await a.broker.produce_many("q", [NewMessage("x")] * 30)
            for delivery in await a.broker.receive("q", max_messages=30, wait_ms=0):
                await a.broker.nack("q", delivery.receipt, final=True)
            task = await a.broker.redrive_tasks.start("q-dlq", rate_per_second=1)
            await until(lambda: any(each.id == task.id for each in b.broker.redrive_tasks.all()))
            assert title in first.own().running
            assert title not in second.own().running


AGED = "UPDATE forq.processes SET heard_at = heard_at - {} WHERE id = 'dead'"


@pytest.mark.tier2
async def test_one_that_was_killed_is_silent_and_then_gone(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        with trio.fail_after(WAIT_SECONDS_MAX):
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


@pytest.mark.tier2
async def test_a_silent_one_is_replaced_by_its_restart(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_REPORT_SECONDS", 0.05)
    async with open_broker(empty_tables) as a:
        with trio.fail_after(WAIT_SECONDS_MAX):
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
        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: len(a.known_processes._heard) == 1)
            (own,) = await a.processes()
            change(empty_tables, change_to.format("'newer'", "'{}'", own.id))
            more = f"replace(replace(state, '{own.id}', 'next'), '{{', '{{\"more\":1,')"
            change(empty_tables, change_to.format("'next'", more, own.id))
            await until(lambda: len(a.known_processes.all()) == 2)
    assert {each.id for each in a.known_processes.all()} == {own.id, "next"}


@pytest.mark.tier2
async def test_who_waits_for_a_message_hears_of_its_end_in_another_process(empty_tables, monkeypatch):
    monkeypatch.setattr(limits, "PEERS_LOOK_SECONDS", WAIT_SECONDS_MAX)  # so that only the notice tells
    async with open_broker(empty_tables) as a, open_broker(empty_tables) as b, trio.open_nursery() as nursery:
        known = {}

        async def wait(message_id: str) -> None:
            known[message_id] = await a.message_result("q", message_id, wait_ms=30_000)

        with trio.fail_after(WAIT_SECONDS_MAX):
            await until(lambda: all(each.known_processes.all() for each in (a, b)))
            sent = [(await b.produce("q", content)).id for content in "xyz"]
            for message_id in sent:
                nursery.start_soon(wait, message_id)
            first, second, _ = await b.receive("q", max_messages=3, wait_ms=0)
            await until(lambda: all(each in a._writer.announced.ended for each in sent))
            await b.ack("q", first, result=KeptResult("done"))
            await b.nack("q", second, reason="no line", final=True)
            await b.cancel("q", (await b.produce("q", "other")).id)
            await until(lambda: len(known) == 2)
            nursery.cancel_scope.cancel()
        assert (known[sent[0]].state, known[sent[0]].result) == ("acked", "done")
        assert (known[sent[1]].state, known[sent[1]].last_error) == ("dead", "no line")
