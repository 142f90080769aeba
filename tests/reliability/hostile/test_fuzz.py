"""Fuzzing of the transport and of every dialect's readers; what must hold is said in `targets`.

Each target gets its fixed inputs first, then libFuzzer mutates them under coverage guidance in a process of its own:
for as many inputs as FORQ_TEST_EFFORT says; in the soak they share its time. A failing input belongs into
`corpus.FOUND`.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.effort import count, soak_seconds

from .corpus import corpus
from .targets import TARGETS

SECONDS_MAX = 86_400
TESTS = Path(__file__).parents[2]

needs_atheris = pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris has no wheel for this Python"
)


def fuzz(target: str, seconds: int, seed: int, directory: Path, inputs: int = -1) -> str:
    """Run the fuzzer for so long, or for so many inputs if that comes first, and return what it said."""
    flags = [f"-max_total_time={seconds}", f"-runs={inputs}"]
    flags += [f"-seed={seed % 2**31 or 1}", "-print_final_stats=1"]
    command = [sys.executable, "-m", "reliability.hostile.fuzz", target, *flags]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds + 120,
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-4_000:]
    return said


def executed(said: str) -> int:
    (line,) = [line for line in said.splitlines() if line.startswith("stat::number_of_executed_units")]
    return int(line.split()[1])


@pytest.mark.parametrize("target", TARGETS)
def test_fixed_inputs(target) -> None:
    for data in corpus(target):
        TARGETS[target](data)


@needs_atheris
@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs(target, seed, tmp_path) -> None:
    fixed = len(list(corpus(target)))
    inputs = executed(fuzz(target, SECONDS_MAX, seed, tmp_path, fixed + count("fuzzed_inputs")))
    print(f"{target}: {inputs} inputs")
    assert inputs > fixed


@needs_atheris
@pytest.mark.soak
@pytest.mark.process
@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs_for_long(target, seed, tmp_path) -> None:
    seconds = max(1, int(soak_seconds() / len(TARGETS)))
    print(f"{target}: {executed(fuzz(target, seconds, seed, tmp_path))} inputs")
