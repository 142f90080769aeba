"""The rules in Prometheus itself: its own checks, and a real one that watches real servers under load."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from support.prometheus import FOLDER, Prometheus, copy_configuration, promtool, running_prometheus
from support.real_server import RealServer, real_server
from support.ui_http import Markup, logged_in, until
from support.watched import SELECTOR, expressions, filled, panels
from support.watched_load import QUEUE, WatchedLoad, running_worker

pytestmark = pytest.mark.tier2

DASHBOARDS = sorted((FOLDER.parent / "grafana" / "dashboards").glob("*.json"))
RULES = sorted((FOLDER / "rules").glob("*.yml"))
METRICS_SECRET = "m" * 32
FILE, POSTGRES = "forq-file", "forq-postgres"
ROUNDS_MAX = 120

ONLY = {"Only with PostgreSQL": POSTGRES, "Only with several servers on PostgreSQL": POSTGRES}
ONLY |= {"Only with a database file": FILE, "None by the server": FILE, "No admin UI is served": FILE}
"""What a panel says where it has nothing to show: which database it is about."""
NEVER = {
    'level="broken"': "a cause is shown after it has lasted a minute",
    'level="attention"': "a cause is shown after it has lasted five minutes",
    f'queue_name="{QUEUE}", level="paused"': "another queue is paused",
    'reason="dlq_full"': "only receives of the dialect of Sasquatch find a dead-letter queue full",
    "forq_budget_refusals_total": "a budget is not used up by so small a load",
}
"""Series that the load does not bring, and why. In the tests of promtool their alerts fire."""
NO_NUMBER = {"forq_checkpoint_pause_seconds": "a pause is for a long log, or for one that has been idle"}
"""Histograms that have nothing in them, and why."""


def test_promtool_accepts_the_configuration_and_the_rules(tmp_path: Path) -> None:
    for name in ("prometheus.yml", "several.yml"):
        folder = tmp_path / name
        (folder / "rules").mkdir(parents=True)
        text = (FOLDER / name).read_text(encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8")
        for secret in re.findall(r"credentials_file: (\S+)", text):
            (folder / secret).write_text(METRICS_SECRET, encoding="utf-8")
        for file in RULES:
            (folder / "rules" / file.name).write_bytes(file.read_bytes())
        assert f"SUCCESS: {len(RULES)} rule files found" in promtool("check", "config", folder / name)
    promtool("check", "rules", "--lint=all", "--lint-fatal", *RULES)


@pytest.mark.parametrize("name", [file.stem for file in sorted((FOLDER / "tests").glob("*.yml"))])
def test_an_alert_fires_when_it_should_and_only_then(name: str) -> None:
    promtool("test", "rules", FOLDER / "tests" / f"{name}.yml")


class Watched(NamedTuple):
    """Servers under load, and who watches them."""

    prometheus: Prometheus
    rounds: list[Callable[[], None]]  # each runs one more round of a load


@pytest.fixture(scope="module")
def watched(postgres, tmp_path_factory) -> Iterator[Watched]:
    """One server on a file, two on a PostgreSQL database, and Prometheus, which scrapes every second."""
    folder = tmp_path_factory.mktemp("watched")
    database = postgres.new_database()
    settings = {
        "FORQ_METRICS_ENABLED": "true",
        "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET,
        "FORQ_ENV": "local",
        "FORQ_HISTORY": "on",
        "FORQ_EVENTS": "on",
    }
    backups = {"FORQ_BACKUP_DIR": str(folder), "FORQ_BACKUP_EVERY_HOURS": "1"}
    with ExitStack() as stack:
        file = stack.enter_context(real_server(folder / "forq.db", ui=True, **settings, **backups))
        shared = [stack.enter_context(real_server(database, ui=True, **settings)) for _ in range(2)]
        jobs = {FILE: [file.address], POSTGRES: [each.address for each in shared]}
        configuration = copy_configuration(folder, METRICS_SECRET, jobs)
        prometheus = stack.enter_context(running_prometheus(configuration, folder))
        until(lambda: len(prometheus.query("up == 1")) == 3)
        stack.enter_context(running_worker(file.url))
        stack.enter_context(running_worker(shared[0].url))
        loads = [stack.enter_context(closing(WatchedLoad(each.url))) for each in (file, *shared)]
        for load in loads:
            load.prepare()
        counts = [stack.enter_context(counting(each)) for each in (file, *shared)]
        yield Watched(prometheus, [*(load.run for load in loads), *counts])
    postgres.drop_database(database)


@contextmanager
def counting(server: RealServer) -> Iterator[Callable[[], None]]:
    """Yields what has the server count at once what it counts every 30 seconds."""
    with logged_in(server.ui_url) as admin:
        headers = {"Origin": server.ui_url, "X-CSRF-Token": Markup(admin.get("/system").text).hidden["csrf"]}

        def count() -> None:
            assert admin.post("/system/jobs/metrics.depth/run", headers=headers).status_code in (204, 303)

        yield count


def test_every_panel_and_every_rule_has_data(watched: Watched) -> None:
    """Also each series that it is made of: with `or on () vector(0)` a panel is never empty, whatever it asks for."""
    wanted = {*of_panels(), *of_rules()}
    assert len(wanted) > 200
    missing = wanted
    for _ in range(ROUNDS_MAX):
        for run in watched.rounds:
            run()
        missing = {expr for expr in missing if not watched.prometheus.has(expr)}
        if not missing:
            break
    assert sorted(missing) == []
    several = {expr for expr in of_one_line() if len(watched.prometheus.query(expr)) > 1}
    assert sorted(several) == []
    evaluated = watched.prometheus.rules()
    assert len(evaluated) == sum(
        len(group["rules"]) for file in RULES for group in yaml.safe_load(file.read_text())["groups"]
    )
    assert set(evaluated.values()) == {""}


def of_one_line() -> Iterator[str]:
    """What panels show as one line, or one figure: its name has no label in it."""
    for file in DASHBOARDS:
        for panel in panels(json.loads(file.read_text(encoding="utf-8"))):
            for target in panel["targets"]:
                if target["format"] == "time_series" and "{{" not in target["legendFormat"]:
                    yield from (filled(target["expr"], job, QUEUE) for job in (FILE, POSTGRES))


def of_panels() -> Iterator[str]:
    """What the panels ask, and the series in it, with variables filled in."""
    for file in DASHBOARDS:
        for panel in panels(json.loads(file.read_text(encoding="utf-8"))):
            only = ONLY.get(panel["fieldConfig"]["defaults"].get("noValue", ""))
            both = [FILE, POSTGRES] if file.stem != "forq-processes" else [FILE]
            for expr in expressions(panel):
                for job in [only] if only else both:
                    text = filled(expr, job, QUEUE)
                    yield from series_of(text)
                    if not any(each in text for each in NO_NUMBER):
                        yield text


def of_rules() -> Iterator[str]:
    """The series that rules ask for and record. An alert's own expression is empty as long as all is well."""
    for file in RULES:
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield from series_of(rule["expr"])
                if "record" in rule:
                    yield rule["expr"]
                    yield from (f'{rule["record"]}{{job="{job}"}}' for job in (FILE, POSTGRES))


def series_of(expr: str) -> Iterator[str]:
    for name, labels in SELECTOR.findall(expr):
        if not any(each in name + labels for each in NEVER):
            yield f"last_over_time({name}{labels}[10m])"
