"""Every test belongs to a tier: the plugin that sees to it (support/tiers.py), and all files of this project."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.tiers import COLLECTED, files_in_no_tier

SOURCES = ("forq_trio", "pyspark_forq", "bench", "examples", "tests")
RUN_BY_A_TEST = {"examples/orders/test_orders.py"}
"""Files with tests that another test runs, as their reader would (tests/house/examples)."""
SHOWN_FIRST = re.compile(r"(?:^\*Shown by\* [^(]*|;\s\[[^(\]]*\])\(\.\./\.\./(tests/[^)]+)\)", re.MULTILINE)
CONFTEST = """
from support import processes, tiers
processes.set_signals()
tiers.CALL_SECONDS_MAX, tiers.SECONDS_MAX = 0.25, 1
tiers.slowness = lambda: 1.0
"""
TESTS = """
import threading
import pytest
from support import tiers

def test_quick(): pass

@pytest.mark.tier2
def test_thorough(): pass

@pytest.mark.soak
def test_for_long(): pass

def test_at_work():
    end = tiers.processor_seconds() + 0.3
    while tiers.processor_seconds() < end:
        pass

def test_waiting():
    threading.Event().wait(0.3)
"""


SIGNALLED = """
import signal
import subprocess
import sys
import pytest

def test_signals():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        end = f"import signal; signal.signal({number}, signal.getsignal({number})); signal.raise_signal({number})"
        done = subprocess.run([sys.executable, "-c", end], stderr=subprocess.DEVNULL)
        assert done.returncode == -number
"""
HANGING = """
import signal
import threading
import pytest
import trio

@pytest.fixture
def never_ready():
    threading.Event().wait()

def test_before(): pass

def test_in_trio():
    trio.run(trio.sleep_forever)

def test_in_a_fixture(never_ready): pass

def test_between(): pass

def test_deaf():
    signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 32))
    signal.sigwait([signal.SIGUSR1])

@pytest.mark.timeout(60)
def test_with_a_bound_of_its_own():
    threading.Event().wait(1.5)
"""
HANGS = {"test_in_trio", "test_in_a_fixture", "test_deaf"}


def run_made_up_tests(place: Path, effort: str, *arguments: str, tests: str = TESTS, before: str = "") -> str:
    """What pytest says of tests where one of tier 1 may take a quarter of a second. before: commands of the shell."""
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_made_up.py").write_text(tests)
    (place / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n    timeout\n    tier2\n    soak\naddopts = --strict-markers\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "support.tiers", *arguments]
    done = subprocess.run(
        ["sh", "-c", f'{before} exec "$@"', "sh", *command],
        cwd=place,
        env=os.environ
        | {
            "FORQ_TEST_EFFORT": effort,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments",
    [pytest.param((), marks=pytest.mark.tier2), ("-p", "xdist", "-n", "1")],
    ids=["alone", "in a worker"],
)
def test_tier_1_leaves_the_others_out_loudly_and_bounds_processor_time(tmp_path, arguments) -> None:
    said = run_made_up_tests(tmp_path, "quick", *arguments)
    assert "1 failed, 2 passed" in said
    assert re.search(
        r"::test_at_work took \d+\.\d s of processor time; in tier 1 a test may take 0\.25 s", said
    )
    assert "NOT RUN: 1 tests of tier2, which script/test --all runs\n" in said
    assert "NOT RUN: 1 tests of soak, which script/soak runs\n" in said


@pytest.mark.tier2
def test_tier_2_has_all_but_the_soaks_and_no_bound(tmp_path) -> None:
    said = run_made_up_tests(tmp_path, "full")
    assert "4 passed, 1 deselected" in said
    assert "NOT RUN: 1 tests of soak" in said
    assert "of tier2" not in said


@pytest.mark.parametrize(
    "arguments", [pytest.param((), marks=pytest.mark.tier2), ("-n", "1")], ids=["alone", "in a worker"]
)
def test_who_started_us_may_have_had_signals_ignored(tmp_path, arguments) -> None:
    """As nohup does, and a shell for what runs in the background; children have what their parent has."""
    said = run_made_up_tests(
        tmp_path, "quick", "-p", "xdist", *arguments, tests=SIGNALLED, before='trap "" INT QUIT HUP TERM;'
    )
    assert "1 passed" in said, said


@pytest.mark.tier2
def test_a_test_that_hangs_ends_in_its_own_name_and_the_others_run(tmp_path) -> None:
    """Wherever it hangs: in trio, in a fixture, with every signal blocked."""
    pytest.importorskip("pytest_timeout", reason="pytest-timeout is not here (pip install -e '.[dev]')")
    plugins = ("-p", "pytest_timeout", "-p", "xdist", "-n", "1")
    said = run_made_up_tests(tmp_path, "quick", *plugins, tests=HANGING)
    assert set(re.findall(r"crashed while running 'test_made_up.py::(\w+)'", said)) == HANGS, said
    assert f"{len(HANGS)} failed, 3 passed" in said


@pytest.mark.tier2
def test_a_soak_has_nothing_else(tmp_path) -> None:
    assert "1 passed, 4 deselected" in run_made_up_tests(tmp_path, "0.1m")


def test_a_file_that_nobody_collects_is_found(tmp_path) -> None:
    for name in (
        "tests/test_a.py",
        "tests/dist/test_b.py",
        "tests/check_c.py",
        "tests/helper.py",
        "lib/d.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def helper(): pass\n" if "helper" in name else "async def test_it(): pass\n")
    collected = {tmp_path / "tests" / "test_a.py"}
    found = files_in_no_tier(tmp_path, collected, [tmp_path / "tests", tmp_path / "lib"])
    assert found == ["lib/d.py", "tests/check_c.py", "tests/dist/test_b.py"]
    assert files_in_no_tier(tmp_path, collected, [tmp_path / "tests" / "test_a.py"]) == []


@pytest.fixture
def asked(request, root) -> list[Path]:
    """What this run was asked to look at."""
    config = request.config
    found = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return [root / name for name in SOURCES] if root / "tests" in found else found


def test_every_file_with_tests_is_in_a_tier(request, root, asked) -> None:
    collected = set().union(*request.config.stash[COLLECTED].values())
    ignored = [root / place for place in request.config.getoption("ignore") or ()]
    left = {*files_in_no_tier(root, collected, asked)} - RUN_BY_A_TEST
    assert [name for name in left if not any(map((root / name).is_relative_to, ignored))] == []


def test_every_promise_of_the_readme_has_tests_in_tier_1(request, root, asked) -> None:
    """Below the folders that are named for it."""
    (table,) = re.findall(
        r"^\| promise \| shown by \|\n\|.*\n((?:\|.*\n)+)", (root / "README.md").read_text(), re.MULTILINE
    )
    quick = request.config.stash[COLLECTED]["tier1"]
    for row in table.splitlines():
        places = [root / place for place in re.findall(r"\]\((tests/[^)]+)\)", row)]
        assert places, row
        judged = [place for place in places if any(place.is_relative_to(each) for each in asked)]
        assert len(judged) < len(places) or any(
            path.is_relative_to(place) for place in places for path in quick
        ), row


def test_the_place_of_every_numbered_behaviour_is_in_tier_1(request, root, asked) -> None:
    """That of its meaning: the first one that its entry in docs/compatibility names, and the first on tables."""
    pages = [page.read_text(encoding="utf-8") for page in (root / "docs" / "compatibility").glob("*.md")]
    shown = {root / place for page in pages for place in SHOWN_FIRST.findall(page)}
    assert len(shown) > 30
    judged = [place for place in shown if any(place.is_relative_to(each) for each in asked)]
    quick = request.config.stash[COLLECTED]["tier1"]
    assert [place for place in judged if not any(path.is_relative_to(place) for path in quick)] == []
