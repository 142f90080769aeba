"""What watches a server: rules, runbooks and dashboards belong together, with words and metrics that there are."""

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml

from forq_trio.cli.commands import forq
from forq_trio.jobs.facts import SLOW_COMMIT_SECONDS, SLOW_COMMITS_MIN
from forq_trio.model import limits
from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.model.queues.bodies import Level
from forq_trio.telemetry.counters import STATES
from forq_trio.telemetry.families import Family
from forq_trio.telemetry.histogram import DISK_SECONDS
from forq_trio.telemetry.rejections import Cause
from support.exposition import all_families
from support.watched import SELECTOR, expressions, panels

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
GRAFANA = ROOT / "deploy" / "grafana"
RUNBOOKS = "https://github.com/forq-trio/forq-trio/blob/main/docs/runbooks.md"
RULE_FILES = sorted((PROMETHEUS / "rules").glob("*.yml"))
TEST_FILES = sorted((PROMETHEUS / "tests").iterdir())
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
UIDS = ["forq-overview", "forq-processes", "forq-queue"]
"""Bookmarks and links name them, so they stay."""
OF_OTHERS = {
    "up",
    "process_start_time_seconds",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_max_fds",
}
"""Series that are not ours: of Prometheus, and of prometheus_client."""
PARTS = ("Look first", "Do", "Ignore it")


def alert_of(file: Path) -> str:
    """The alert that a file of tests is about: ForqDown.yml, or ForqMessagesDie-days.yml."""
    return file.stem.partition("-")[0]


def rules_of(file: Path) -> list[dict[str, Any]]:
    groups = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


RULES = [rule for file in RULE_FILES for rule in rules_of(file)]
ALERTS = [rule for rule in RULES if "alert" in rule]
NAMES = sorted({alert["alert"] for alert in ALERTS})


@pytest.fixture(scope="module")
def runbooks() -> dict[str, str]:
    """The text below the heading of each alert."""
    text = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
    found = re.findall(r"^### (\w+)\n((?:(?!^#).*\n)*)", text, re.MULTILINE)
    assert len(dict(found)) == len(found)
    return dict(found)


@pytest.fixture(scope="module")
def dashboards() -> list[dict[str, Any]]:
    return [json.loads(file.read_text(encoding="utf-8")) for file in DASHBOARDS]


@pytest.fixture(scope="module")
def families() -> dict[str, Family]:
    return {family.name: family for family in all_families()}


# Alerts and runbooks


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_how_bad_it_is_what_it_means_and_what_to_do(alert: dict[str, Any]) -> None:
    assert re.fullmatch(r"Forq[A-Z]\w+", alert["alert"])
    assert alert["labels"] in ({"severity": "critical"}, {"severity": "warning"})
    assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert alert["annotations"]["runbook_url"] == f"{RUNBOOKS}#{alert['alert'].lower()}"
    assert not alert["annotations"]["summary"].endswith(".")
    assert alert["annotations"]["description"].endswith(".")


def test_every_alert_has_its_runbook_and_every_runbook_its_alert(runbooks: dict[str, str]) -> None:
    assert sorted(runbooks) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_runbook_says_what_to_look_at_what_to_do_and_when_to_ignore(
    runbooks: dict[str, str], name: str
) -> None:
    text = runbooks[name]
    assert re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE) == list(PARTS)
    assert not text.strip().startswith(("-", "|"))  # first of all it says what the alert means


def test_the_commands_of_the_runbooks_exist(runbooks: dict[str, str]) -> None:
    found = {command for text in runbooks.values() for command in re.findall(r"`forq ([a-z ]+)", text)}
    assert len(found) > 10
    assert [command for command in sorted(found) if not is_command(command.split())] == []


def is_command(words: list[str]) -> bool:
    group: click.Command = forq
    context = click.Context(forq)
    while words and isinstance(group, click.Group):
        found = group.get_command(context, words.pop(0))
        if found is None:
            return False
        group = found
    return not isinstance(group, click.Group)


def test_a_command_that_is_not_there_is_found() -> None:
    assert is_command(["dead", "list"])
    assert not is_command(["dead", "lst"])
    assert not is_command(["dead"])


@pytest.mark.parametrize("name", NAMES)
def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not(name: str) -> None:
    """promtool runs them in tier 2."""
    cases = [yaml.safe_load(file.read_text()) for file in TEST_FILES if alert_of(file) == name]
    checks = [
        check
        for case in cases
        for test in case["tests"]
        for check in test.get("alert_rule_test", [])
        if check["alertname"] == name
    ]
    firing = [check for check in checks if check.get("exp_alerts")]
    quiet = [check for check in checks if not check.get("exp_alerts")]
    severities = {alert["labels"]["severity"] for alert in ALERTS if alert["alert"] == name}
    assert {each["exp_labels"]["severity"] for check in firing for each in check["exp_alerts"]} == severities
    assert quiet


def test_no_test_is_left_of_an_alert_that_is_gone() -> None:
    assert sorted(set(map(alert_of, TEST_FILES))) == NAMES


def described(name: str) -> str:
    """All that one reads of an alert."""
    return " ".join(" ".join(alert["annotations"].values()) for alert in ALERTS if alert["alert"] == name)


def test_alerts_and_runbooks_have_the_words_of_the_verdicts(runbooks: dict[str, str]) -> None:
    # A test compares the table there with the verdicts.
    text = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"^\| (broken|attention) \| (.+?) \|", text, re.MULTILINE)
    for level, name in (("broken", "ForqQueueBroken"), ("attention", "ForqQueueNeedsAttention")):
        shown = re.findall(r"^\| (.+?) \|", runbooks[name], re.MULTILINE)[1:]
        assert shown == [verdict for found, verdict in verdicts if found == level]
    for level, verdict in verdicts:
        assert level != "broken" or f"{verdict}." in described("ForqQueueBroken")
    assert REFUSAL_WORDS["storage_full"] in described("ForqDiskFull")
    assert REFUSAL_WORDS["storage_lost"] in described("ForqFilesLost")
    assert "Dead letters are lost, their queue is full" in described("ForqDeadLettersLost")


def test_bounds_in_the_rules_are_those_of_the_server() -> None:
    exprs = {alert["alert"]: alert["expr"] for alert in ALERTS}
    assert f"> {limits.INBOX_CALLS_MAX // 4}" in exprs["ForqCallsWait"]
    assert f"{limits.INBOX_CALLS_MAX:,}" in described("ForqCallsWait")
    assert f"> {SLOW_COMMIT_SECONDS}" in exprs["ForqSlowCommits"]
    assert f">= {SLOW_COMMITS_MIN}" in exprs["ForqSlowCommits"]
    assert f"> {limits.SNAPSHOT_HELD_MS // limits.SECOND_MS}" in exprs["ForqSnapshotOld"]
    assert f"{limits.WORKER_SILENT_MS // limits.SECOND_MS} s" in described("ForqWorkersSilent")
    assert 64 * limits.MIB > limits.CHECKPOINT_PAUSE_PAGES * limits.LOG_PAGE_BYTES
    assert 1.0 in DISK_SECONDS  # forq:commits_slow:ratio5m takes its bucket


def test_the_objectives_of_the_rules_are_those_of_the_dashboards() -> None:
    ours = runpy.run_path(str(GRAFANA / "generate" / "objectives.py"))
    for each in ours["OBJECTIVES"]:
        exprs = {
            alert["labels"]["severity"]: alert["expr"] for alert in ALERTS if alert["alert"] == each.alert
        }
        fast, slow = exprs["critical"].split("\nor\n")
        allowed = f"{each.allowed:g}"
        assert set(re.findall(r"> ([\d.]+) \* ([\d.]+)", fast)) == {(f"{ours['FAST']:g}", allowed)}
        assert re.findall(r"\[(\w+)\]", fast)[0] == ours["FAST_WINDOW"]
        assert {share for _, share in re.findall(r"> ([\d.]+) \* ([\d.]+)", slow)} == {allowed}
        assert set(re.findall(r"> (0\.\d+)", exprs["warning"])) == {allowed}
        assert f"t most {each.allowed * 100:g} %" in described(each.alert)
    (too_old,) = [rule["expr"] for rule in RULES if rule.get("record") == "forq:queue_too_old:bool"]
    seconds = ours["TOO_OLD_SECONDS"]
    assert re.findall(r"> bool (\d+)", too_old) == [str(seconds)]
    assert f"more than {seconds // 60} minutes" in described("ForqMessagesTooOld")


# What is asked of Prometheus


def asked() -> Iterator[str]:
    for rule in RULES:
        yield rule["expr"]
    for file in DASHBOARDS:
        for panel in panels(json.loads(file.read_text(encoding="utf-8"))):
            yield from expressions(panel)


def is_known(name: str, labels: str, families: dict[str, Family]) -> bool:
    """Whether the server shows such a series, or a rule records it."""
    if name in OF_OTHERS or name in {rule.get("record") for rule in RULES}:
        return True
    family = families.get(name) or families.get(re.sub("_(bucket|sum|count)$", "", name))
    if family is None:
        return False
    if family.name != name and family.type != "histogram":
        return False
    return set(re.findall(r"(\w+)[!=~]+\"", labels)) <= {*family.labels, "job", "instance", "le"}


def test_every_series_that_is_asked_for_exists_with_these_labels(families: dict[str, Family]) -> None:
    found = {(name, labels) for expr in asked() for name, labels in SELECTOR.findall(expr)}
    assert len(found) > 80
    assert sorted((name, labels) for name, labels in found if not is_known(name, labels, families)) == []
    assert not is_known("forq_queue_deep", "", families)
    assert not is_known("forq_queue_depth_sum", "", families)
    assert not is_known("forq_queue_depth", '{state="ready"}', families)


def test_a_panel_shows_no_zero_beside_what_there_is() -> None:
    """As `x or vector(0)` does where x has labels."""
    assert [expr for expr in asked() if re.search(r"or vector\(", expr)] == []


def test_values_of_labels_are_those_of_the_server(families: dict[str, Family]) -> None:
    text = "\n".join(asked())
    assert set(re.findall(r'level="(\w+)"', text)) == set(get_args(Level))
    assert set(re.findall(r'state="(\w+)"', text)) <= {*STATES, "busy", "idle", "silent", "running"}
    causes = {cause for found in re.findall(r'cause=~?"([\w|]+)"', text) for cause in found.split("|")}
    assert causes <= {*map(str, Cause), *REFUSAL_WORDS}


def test_the_series_that_the_rules_record_are_used() -> None:
    text = "\n".join(asked())
    recorded = [rule["record"] for rule in RULES if "record" in rule]
    assert recorded
    assert [name for name in recorded if name not in text] == []


# Prometheus' configuration


@pytest.mark.parametrize("name", ["prometheus.yml", "several.yml"])
def test_the_configuration_reads_servers_with_their_secret(name: str) -> None:
    configuration = yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))
    assert configuration["rule_files"] == ["rules/*.yml"]
    for job in configuration["scrape_configs"]:
        assert job["job_name"].startswith("forq")
        assert job["authorization"].keys() == {"credentials_file"}
        assert job.get("metrics_path", "/metrics") == "/metrics"
    if name == "prometheus.yml":
        assert job["static_configs"] == [{"targets": ["forq:8080"]}]


# Dashboards


def test_the_dashboards_are_those_that_their_source_makes(tmp_path: Path) -> None:
    command = [sys.executable, GRAFANA / "generate", tmp_path]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(command, env=environment, check=True, timeout=120)
    made = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    assert made == {file.name: file.read_text(encoding="utf-8") for file in DASHBOARDS}


def test_dashboards_have_names_that_stay(dashboards: list[dict[str, Any]]) -> None:
    assert [each["uid"] for each in dashboards] == [file.stem for file in DASHBOARDS] == UIDS
    assert len({each["title"] for each in dashboards}) == len(UIDS)
    for each in dashboards:
        assert [variable["name"] for variable in each["templating"]["list"]][:2] == ["datasource", "job"]
        linked = re.findall(r"/d/([\w-]+)", json.dumps(each))
        assert set(linked) <= set(UIDS)


def test_a_panel_says_what_it_shows_and_in_which_unit(dashboards: list[dict[str, Any]]) -> None:
    for dashboard in dashboards:
        shown = panels(dashboard)
        kinds = [(panel["type"], panel["title"]) for panel in shown]
        assert sorted(kinds) == sorted(set(kinds)), "two panels have one title"
        for panel in shown:
            assert panel["title"]
            assert panel["description"].endswith("."), panel["title"]
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            references = [target["refId"] for target in panel["targets"]]
            assert len(set(references)) == len(references) > 0
            for override in panel["fieldConfig"]["overrides"]:
                if override["matcher"]["id"] == "byFrameRefID":
                    assert override["matcher"]["options"] in references
        identities = [panel["id"] for panel in dashboard["panels"]]
        assert identities == list(range(1, len(identities) + 1))


def test_panels_fill_their_lines_and_lie_on_no_other(dashboards: list[dict[str, Any]]) -> None:
    for dashboard in dashboards:
        taken: dict[tuple[int, int], str] = {}
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            assert place["w"] >= (3 if panel["type"] == "stat" else 8)
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    assert (x, y) not in taken, (panel["title"], taken.get((x, y)))
                    taken[x, y] = panel["title"]
        height = 1 + max(y for _, y in taken)
        assert len(taken) == 24 * height, f"{dashboard['title']} has gaps"


def test_the_runbooks_name_panels_that_are_there(
    runbooks: dict[str, str], dashboards: list[dict[str, Any]]
) -> None:
    titles = {each["title"] for each in dashboards}
    of_panels = {panel["title"] for each in dashboards for panel in panels(each)}
    for name, text in runbooks.items():
        for line in re.findall(r"^.*on the dashboard \*Forq / .*$", text, re.MULTILINE):
            shown, _, rest = line.partition("on the dashboard ")
            assert re.match(r"\*(.+?)\*", rest)[1] in titles, name  # type: ignore[index]
            named = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", shown)
            assert named, name
            assert [each for each in named if each not in of_panels] == [], name


def test_provisioning_leads_to_prometheus_and_to_the_dashboards() -> None:
    provisioning = GRAFANA / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    scraped = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "forq.yml").read_text())["providers"]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
