"""How hard the tests try: FORQ_TEST_EFFORT, and how many trials that makes of each random test.

- `quick`, the default: tier 1, which `script/test` runs. The least that notices a broken promise.
- `full`: tier 2, `script/test --all`. More trials of the same, and the tests marked `tier2`.
- a number: tier 2 with that many times the trials of `full`, to search for long.
- a number and `m`, as `30m`: only the tests marked `soak`, each for that many minutes.
"""

import os
import re
from typing import NamedTuple

import pytest

VARIABLE = "FORQ_TEST_EFFORT"


class Effort(NamedTuple):
    """What a run of the tests was asked for.

    tiers: which tests run. times: how many times the trials of `full`; None in tier 1. minutes: how long each soak
    lasts.
    """

    tiers: frozenset[str]
    times: float | None
    minutes: float


class Count(NamedTuple):
    """How much of one thing is tried. quick is None where all tests that read it are in tier 2."""

    quick: int | None
    full: int
    what: str


# Of a stride, the smaller is the more: every 300th operation fails, or every 23rd.
COUNTS = {
    "whole_app_trials": Count(45, 2_000, "simulated trials of the whole application"),
    "postgres_app_trials": Count(None, 50, "the same on three PostgreSQL engines, whose connections are cut"),
    "writer_trials": Count(8, 100, "simulated trials of the writer, in tier 1 on SQLite alone"),
    "postgres_trials": Count(None, 12, "the same there, on the three PostgreSQL engines"),
    "writer_scripts": Count(15, 60, "random scripts of commands with cancellations"),
    "model_histories": Count(10, 50, "random histories on which the engines are compared"),
    "bounded_histories": Count(2, 25, "the same with small bounds on each batch, of each of eight topics"),
    "rehearsed_histories": Count(None, 25, "the same with and without rehearsals, on PostgreSQL"),
    "moved_histories": Count(2, 50, "the same with leases that move messages"),
    "disturbed_histories": Count(3, 25, "the same with a bad command in each batch"),
    "bounded_batches": Count(150, 1_000, "random batches on a full queue whose settings change"),
    "order_histories": Count(10, 40, "random histories of order and deduplication"),
    "clock_histories": Count(3, 40, "random histories of schedules where clocks change"),
    "power_cuts": Count(60, 300, "power cuts at each durability"),
    "power_cuts_without_syncs": Count(40, 100, "power cuts of an engine that never syncs"),
    "mixed_batches": Count(5, 100, "random batches of three kinds of commands, whose waits are counted"),
    "connection_cuts": Count(20, 1_000, "cuts of connections to PostgreSQL, at random bytes"),
    "disk_fault_stride": Count(300, 23, "from one failing disk operation to the next"),
    "upgrade_fault_stride": Count(None, 23, "the same while a file is brought up to date"),
    "kills": Count(1, 10, "kills with SIGKILL under load"),
    "worker_kills": Count(1, 12, "kills with SIGKILL of workers and of their server"),
    "offer_kills": Count(1, 30, "kills with SIGKILL while messages with keys are offered"),
    "offer_races": Count(30, 1_000, "offers that race with the acknowledgement of their key"),
    "spark_kills": Count(1, 10, "kills of a server that Spark uses, and in tier 2 of a Spark driver"),
    "foreign_checkpoints": Count(
        4, 100, "random jobs with each other's checkpoints, on a server that is restored"
    ),
    "stops": Count(1, 2, "stops with SIGTERM under load"),
    "broken_exchanges": Count(3, 9, "exchanges that break off, at each point and in each way"),
    "http2_conversations": Count(200, 5_000, "random conversations over HTTP/2"),
    "requests_beside_floods": Count(3, 20, "requests of HTTP/1.1 beside each flood of HTTP/2"),
    "interrupted_sends": Count(1, 40, "Ctrl-C at a random moment of `forq send`"),
    "requests": Count(2, 8, "generated requests for each operation of the API"),
    "request_sequences": Count(None, 25, "generated sequences of requests"),
    "fuzzed_inputs": Count(None, 200, "mutated inputs for each target of the fuzzer"),
}


def parse(text: str) -> Effort:
    """Raises ValueError for what FORQ_TEST_EFFORT cannot be."""
    if text == "quick":
        return Effort(frozenset({"tier1"}), None, 0)
    if text == "full":
        text = "1"
    number = re.fullmatch(r"(\d+(?:\.\d+)?)(m?)", text)
    if number is None or float(number[1]) == 0:
        raise ValueError(f"{VARIABLE}={text}: quick, full, a number, or minutes such as 30m")
    if number[2]:
        return Effort(frozenset({"soak"}), 1.0, float(number[1]))
    return Effort(frozenset({"tier1", "tier2"}), float(number[1]), 0)


EFFORT = parse(os.environ.get(VARIABLE) or "quick")
TRIALS_SECONDS_MAX = 60.0 if EFFORT.times is None else 900.0 * max(1.0, EFFORT.times)
many_trials = pytest.mark.timeout(TRIALS_SECONDS_MAX)
"""Marks a test that does as many trials as the effort says: it hangs only after that long."""


def count(name: str, effort: Effort = EFFORT) -> int:
    """How many there are of what COUNTS names, or how long the stride is; always at least 1."""
    found = COUNTS[name]
    if effort.times is None:
        return found.quick or found.full
    if name.endswith("_stride"):
        return max(1, int(found.full / effort.times))
    return max(1, int(found.full * effort.times))


def soak_seconds(effort: Effort = EFFORT) -> float:
    """How long each soak lasts."""
    return 60 * effort.minutes


def soak_rounds(effort: Effort = EFFORT) -> int:
    """The least rounds of a soak that counts them: 100 in the ten minutes that are the default."""
    return max(2, round(10 * effort.minutes))
