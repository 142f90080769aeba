"""Where a row has its columns is taken from its statement: one that is added in its middle is refused."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forq_trio
from forq_trio.storage.relational.connection import STATEMENTS
from forq_trio.storage.relational.parts import inserts
from forq_trio.storage.relational.statements import bound_columns, columns


@pytest.fixture
def package(tmp_path) -> Path:
    """A copy of the package whose statements a test changes."""
    copy = tmp_path / "forq_trio"
    shutil.copytree(
        Path(forq_trio.__file__).parent,
        copy,
        ignore=shutil.ignore_patterns("__pycache__", "static", "templates"),
    )
    return copy


def refusal(package: Path) -> str:
    """What the import of the operations says in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", "import forq_trio.storage.relational.operations"],
        cwd=package.parent,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


CHANGES = {
    "a column is added": ("seq, id, content, attempts,", "seq, updated_at, id, content, attempts,"),
    "two are swapped": (
        "seq, id, content, attempts, received_at, priority,",
        "seq, id, content, attempts, priority, received_at,",
    ),
    "two bindings are swapped": (
        "(seq, id, queue, status, process_after, received_at, updated_at,",
        "(seq, id, status, queue, process_after, received_at, updated_at,",
    ),
    "two of what a settlement reads": (
        "failures, dead_letter_queue, source_queue,",
        "failures, source_queue, dead_letter_queue,",
    ),
}


def test_a_column_that_the_code_does_not_expect_is_refused_by_name(package) -> None:
    path = package / "storage/relational/sql/engine.sql"
    text = path.read_text(encoding="utf-8")
    assert refusal(package) == ""
    for change, (before, after) in CHANGES.items():
        assert before in text
        path.write_text(text.replace(before, after, 1), encoding="utf-8")
        assert refusal(package).startswith("ValueError: the columns are "), change


def test_columns_are_read_by_their_names() -> None:
    assert columns("engine", "ready")[:3] == ("seq", "id", "content")
    assert "bytes" in columns("engine", "ready")
    assert bound_columns("INSERT INTO a (x, y, z, u)\nVALUES (?2, 7, ?1, ?2)") == ("z", "x")
    assert bound_columns("INSERT INTO a (x, y)\nVALUES (?, ?)") == ("x", "y")


def test_both_inserts_begin_with_the_same_columns() -> None:
    assert bound_columns(STATEMENTS["insert_message"])[: len(inserts.PLAIN)] == inserts.PLAIN
