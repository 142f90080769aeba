"""The programs of docs/workers.md and docs/worker-deployment.md run as they stand, and all options are named."""

import inspect
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from forq_trio.worker import Job, Worker
from forq_trio.worker.app import DRAIN_SECONDS_DEFAULT
from forq_trio.worker.metrics import measure
from support.programs import run_program

ROOT = Path(__file__).parents[3]
PAGES = ("workers.md", "worker-deployment.md")
PAGE = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
PROGRAMS = re.findall(r"^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
PRINTED = ["to anna@example.org\n", "1\n"]


def test_every_program_is_run() -> None:
    assert len(PROGRAMS) == len(PRINTED)


@pytest.mark.parametrize("number", range(len(PRINTED)))
def test_it_runs(number: int, tmp_path: Path) -> None:
    run = run_program(PROGRAMS[number], tmp_path)
    assert (run.stderr, run.stdout) == ("", PRINTED[number])


def test_the_tables_name_every_option_and_member() -> None:
    named = set(re.findall(r"`(\w+)(?:\(\w*\))?`", PAGE))
    options = {*inspect.signature(Worker.on).parameters} - {"self", "queue"}
    members = {name for name in vars(Job) if not name.startswith("_")} - {"lose"}
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
