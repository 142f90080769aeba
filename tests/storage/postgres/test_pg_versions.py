"""Each supported version of PostgreSQL takes every statement, and does what a queue is for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio.storage.postgres.open import VERSION_MIN
from support.needs import lacks
from support.postgres import all_programs

NEWEST = 18
ROOT = Path(__file__).parents[3]
PIECE = ["tests/storage/postgres/test_pg_dialect.py", "tests/storage/postgres/test_pg_sent.py"]
PIECE += [f"tests/conformance/test_{name}.py" for name in ("claim", "reader")]


@pytest.mark.tier2
@pytest.mark.parametrize("version", range(VERSION_MIN, NEWEST + 1))
def test_a_piece_of_the_conformance_suite(version):
    if (programs := all_programs().get(version)) is None:
        lacks(
            f"PostgreSQL {version}",
            "its programs (FORQ_TEST_POSTGRES_MORE: docs/testing.md)",
            installed=False,
        )
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "not memory and not sqlite and not three",
            *PIECE,
        ],
        env=os.environ | {"FORQ_TEST_POSTGRES": str(programs), "FORQ_TEST_EFFORT": "0.05"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-4000:]
    assert "skipped" not in run.stdout
