"""Fuzzing of the transport and of every dialect's readers; what must hold is said in `targets`.

Each target gets its fixed inputs first, then libFuzzer mutates them under coverage guidance in a process of its own:
for as many inputs as FORQ_TEST_EFFORT says; in the soak they share its time. A failing input belongs into
`corpus.FOUND`. One test fuzzes all targets, because `fuzz` is instrumented once for them.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.effort import count, many_trials, soak_seconds

from .corpus import corpus
from .targets import TARGETS

SECONDS_MAX = 86_400
START_SECONDS_MAX = 300  # to instrument the package, which takes 12 s of the processor
TESTS = Path(__file__).parents[2]

needs_atheris = pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris has no wheel for this Python"
)


def fuzz(seconds: int, seed: int, directory: Path, mutated: int = -1) -> dict[str, int]:
    """Fuzz each target for so long, or with so many mutated inputs if that comes first, and return how many inputs each
    had with its fixed ones.
    """
    flags = [f"-max_total_time={seconds}", f"-seed={seed % 2**31 or 1}", "-print_final_stats=1"]
    command = [sys.executable, "-m", "reliability.hostile.fuzz", ",".join(TARGETS), str(mutated), *flags]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent)])
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds * len(TARGETS) + START_SECONDS_MAX,
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said[-4_000:]
    inputs = re.findall(r"^stat::number_of_executed_units: (\d+)$", said, re.MULTILINE)
    return dict(zip(TARGETS, map(int, inputs), strict=True))


@pytest.mark.parametrize("target", TARGETS)
def test_fixed_inputs(target) -> None:
    for data in corpus(target):
        TARGETS[target](data)


@needs_atheris
@pytest.mark.tier2
@pytest.mark.process
@many_trials
def test_mutated_inputs(seed, tmp_path) -> None:
    mutated = count("fuzzed_inputs")
    for target, inputs in fuzz(SECONDS_MAX, seed, tmp_path, mutated).items():
        print(f"{target}: {inputs} inputs")
        assert inputs >= len(list(corpus(target))) + mutated


@needs_atheris
@pytest.mark.soak
@pytest.mark.process
def test_mutated_inputs_for_long(seed, tmp_path) -> None:
    for target, inputs in fuzz(max(1, int(soak_seconds() / len(TARGETS))), seed, tmp_path).items():
        print(f"{target}: {inputs} inputs")
        assert inputs > 0
