"""The programs of docs/workers.md and docs/worker-deployment.md run as they stand, and all options are named."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from forq_trio.worker import Job, Worker
from forq_trio.worker.app import DRAIN_SECONDS_DEFAULT
from forq_trio.worker.metrics import measure
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.programs import run_program
from support.real_server import environment

ROOT = Path(__file__).parents[3]
PAGES = ("workers.md", "worker-deployment.md")
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
PROGRAMS = re.findall(r"^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
APPLICATION, PROGRAMS = PROGRAMS[:2], PROGRAMS[2:]
PRINTED = ["people.signups\nhello anna\n", "1\n"]
LINES_MAX = 25


def test_every_program_is_run() -> None:
    assert len(PROGRAMS) == len(PRINTED)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_it_runs(number: int, tmp_path: Path) -> None:
    run = run_program(PROGRAMS[number], tmp_path)
    assert (run.stderr, run.stdout) == ("", PRINTED[number])


@pytest.fixture
def application(tmp_path: Path) -> Path:
    """The folder with the two files of the application with which the page begins."""
    for text in APPLICATION:
        (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.py", "test_shop.py"]
    return tmp_path


def test_the_page_begins_with_a_whole_application_in_few_lines() -> None:
    assert PAGE.index("```python") < 400
    assert sum(bool(line) for text in APPLICATION for line in text.splitlines()) <= LINES_MAX


def test_what_its_web_process_sends_its_worker_handles(application: Path) -> None:
    with in_process_server() as url:
        env = environment(PYTHONPATH=str(ROOT), FORQ_URL=url)
        python = [sys.executable, "-W", "error"]
        web = [*python, "-c", "import shop; shop.view('anna')"]
        subprocess.run(web, cwd=application, env=env, timeout=WAIT_SECONDS_MAX, check=True)
        with (
            subprocess.Popen(
                [*python, "-u", "shop.py"], cwd=application, env=env, stdout=subprocess.PIPE, text=True
            ) as worker,
            killed_after(worker),
        ):
            assert worker.stdout is not None
            assert worker.stdout.readline() == "to anna\n"
            worker.terminate()
            assert worker.wait(WAIT_SECONDS_MAX) == 0


def test_its_test_passes_on_trio_and_on_asyncio(application: Path) -> None:
    options = ("-q", "-W", "error", "--strict-markers", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=application,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    assert run.stdout.splitlines()[-1].startswith("2 passed"), run.stdout


def test_the_tables_name_every_option_and_member() -> None:
    named = set(re.findall(r"`(\w+)(?:\(\w*\))?`", PAGE))
    options = {*inspect.signature(Worker.on).parameters} - {"self", "queue"}
    members = {name for name in vars(Job) if not name.startswith("_")} - {"lose"} | {"state"}
    assert options | members <= named


def test_the_table_names_every_series() -> None:
    registry = CollectorRegistry()
    measure(Worker("memory:"), registry)
    named = set(re.findall(r"^\| `(forq_handler_\w+)` \| \w+ \|", PAGE, re.MULTILINE))
    assert named == {f"{each.name}{'_total' * (each.type == 'counter')}" for each in registry.collect()}


def test_a_deployment_waits_longer_than_a_drain() -> None:
    (pod,) = re.findall(r"^```yaml\n([\s\S]*?)^```", PAGE, re.MULTILINE)
    seconds = [yaml.safe_load(pod)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]]
    seconds += [int(each) for each in re.findall(r"(?:TimeoutStopSec=|--stop-timeout )(\d+)", PAGE)]
    assert len(seconds) == 3
    assert min(seconds) > DRAIN_SECONDS_DEFAULT
