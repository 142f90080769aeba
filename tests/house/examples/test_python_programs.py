"""The programs of docs/python.md and three more pages run as they stand, and print what they say they do."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.in_process import in_process_server
from support.programs import INSTALLED, path_to_package, python_of, run_program
from support.real_server import environment, real_server

ROOT = Path(__file__).parents[3]
PAGES = ("python.md", "embedding.md", "telemetry.md", "pipelines.md")
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
PROGRAMS = dict(
    re.findall(r"^## (.+)\n(?:(?!^## |^```python)[\s\S])*?^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
)
PRINTED = {
    "Blocking": r"hello\n",
    "JSON": r"8\n7\n",
    "trio and asyncio": r"hello\n",
    "Embedding": r"hello\n",
    "Embedding under asyncio": r"hello\n",
    "Embedding in a blocking program": r"hello\n",
    "Metrics": r"1\.0\n",
    "Errors": r"forq\.queue_full\nbad_request\.priority\.out_of_range\n",
    "Keys": r"created\nupdated\n\[\('customer/41', '2'\), \('customer/42', '3'\)\]\n",
    "Publishing a data set": r"True 1\n\[.one., .two., .three.\]\n",
    "Many messages at once": r"small stored\nlate bad_request\.delayMs\.out_of_range\nlarge stored\n\[True, True\]\n",
}
STATEMENTS_MAX = 15
FIXTURES = ("Testing",)
EMBEDDED = ("Embedding", "Embedding under asyncio", "Embedding in a blocking program")
SHORT = ("Blocking", "trio and asyncio", *EMBEDDED)


def test_every_program_is_run() -> None:
    assert PROGRAMS.keys() == {*PRINTED, *FIXTURES}
    assert len(PROGRAMS) == PAGE.count("```python")


@pytest.mark.parametrize("name", SHORT)
def test_the_first_programs_are_short(name: str) -> None:
    assert len([line for line in PROGRAMS[name].splitlines() if line]) <= STATEMENTS_MAX


@pytest.mark.parametrize("name", FIXTURES)
def test_the_fixtures_for_tests_work(name: str, tmp_path: Path) -> None:
    """On trio and on asyncio."""
    (tmp_path / "test_reminders.py").write_text(PROGRAMS[name], encoding="utf-8")
    run = subprocess.run(
        [
            *(python_of("embed"), "-m", "pytest", "-q", "-W", "error", "--strict-markers"),
            *("-p", "no:schemathesis", tmp_path),  # its import takes 0.9 s; no application has it
        ],
        cwd=tmp_path,
        env=environment(**path_to_package()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stdout.splitlines()[-1].startswith("2 passed"), run.stdout


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    if INSTALLED:
        database = tmp_path_factory.mktemp("server") / "forq.db"
        with real_server(database, python=(python_of("server"), "-P")) as server:
            yield server.url
    else:
        with in_process_server() as url:
            yield url


@pytest.mark.parametrize("name", PRINTED)
def test_it_runs(name: str, url: str, tmp_path: Path) -> None:
    extra = "embed" if name in EMBEDDED else "client"
    run = run_program(PROGRAMS[name], tmp_path, extra, FORQ_URL=url)
    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(PRINTED[name], run.stdout), run.stdout
