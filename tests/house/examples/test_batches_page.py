"""docs/batches.md: its programs run as they stand, and its bounds are those of the code."""

import re
from pathlib import Path
from typing import get_args

from forq_trio import ForqClient
from forq_trio.model import limits
from forq_trio.model.message_batches.types import MessageBatchOutcome
from support.in_process import in_process_server
from support.programs import run_program
from support.real_server import SECRET

PAGE = (Path(__file__).parents[3] / "docs" / "batches.md").read_text(encoding="utf-8")
FIRST, CHAIN, CLIENT = re.findall(r"^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
WORDS_MAX = 1_200


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= WORDS_MAX


def test_the_first_program_tells_of_the_end_last(tmp_path: Path) -> None:
    done = run_program(FIRST, tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sorted(lines[:-1]) == ["a.jpg", "b.zip", "c.jpg"]
    assert lines[-1] == "album 7 is ready"


def test_the_program_of_a_client_makes_a_batch(tmp_path: Path) -> None:
    with in_process_server() as url, ForqClient(url, SECRET) as client:
        done = run_program(CLIENT, tmp_path, FORQ_URL=url, FORQ_AUTH_SECRET=SECRET)
        assert (done.returncode, done.stderr) == (0, "")
        (found,) = client.batches().batches
        assert (found.state, found.left) == ("closed", 3)
        client.ack("orders", [each.receipt for each in client.receive("orders", max_messages=3, wait_ms=0)])
        assert client.batch(found.id).outcome == "sent"
        (delivery,) = client.receive("reports", wait_ms=0)
        assert delivery.content == "the import is done"


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"| {limits.MESSAGE_BATCHES_MAX:,} | {limits.MESSAGE_BATCHES_OF_TOKENS_MAX:,} |" in PAGE
    mib = limits.MESSAGE_BATCHES_BYTES_MAX >> 20, limits.MESSAGE_BATCHES_BYTES_OF_TOKENS_MAX >> 20
    assert f"| {mib[0]} MiB | {mib[1]} MiB |" in PAGE
    assert f"| {limits.MESSAGE_BATCH_MEMBERS_MAX:,} |" in PAGE
    assert f"| {limits.MESSAGE_BATCH_DEPTH_MAX} |" in PAGE


def test_the_page_has_every_outcome() -> None:
    outcomes = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(outcomes) == sorted(["outcome", *get_args(MessageBatchOutcome)])
