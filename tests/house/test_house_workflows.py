"""The workflows of .github run our scripts, may do no more than they need, and take actions of one commit each."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.needs import lacks

PINNED = re.compile(r"^[\w-]+/[\w./-]+@[0-9a-f]{40}$")
VERSION = re.compile(r"uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
ACTIONLINT = "go install github.com/rhysd/actionlint/cmd/actionlint@latest, and put it on PATH"
NO_SCRIPT = {"tests": ("brew install bash coreutils",), "image": ("docker ", "install -d -m 700 secrets ")}
"""How commands begin that are no script of ours: a Mac has neither of those two; compose.yaml has the others."""
RIGHTS = {"contents": "read", "pages": "write", "id-token": "write"}
WITH_IDENTITY = {"release.publish", "site.publish"}
"""The jobs that say who they are to somebody else: to PyPI, and to Pages, which asks for it."""


@pytest.fixture(scope="module")
def folder(root) -> Path:
    return root / ".github" / "workflows"


@pytest.fixture(scope="module")
def workflows(folder) -> dict[str, dict[Any, Any]]:
    """Each by its name. YAML reads the key `on` as True."""
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def jobs(workflows) -> dict[str, dict[str, Any]]:
    return {f"{name}.{job}": each for name, found in workflows.items() for job, each in found["jobs"].items()}


@pytest.fixture(scope="module")
def steps(jobs) -> list[tuple[str, dict[str, Any]]]:
    return [(name, step) for name, job in jobs.items() for step in job.get("steps", ())]


def test_actionlint_finds_nothing(folder, root) -> None:
    actionlint = shutil.which("actionlint")
    if actionlint is None:
        lacks("workflows", f"actionlint ({ACTIONLINT})")
    done = subprocess.run([actionlint, "-no-color"], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_there_is_one_for_each_part(workflows) -> None:
    assert workflows.keys() == {"tests", "wheels", "image", "site", "release"}
    assert all(found["name"] == name for name, found in workflows.items())


def test_they_run_our_scripts(workflows, steps, root) -> None:
    runs = [(name.partition(".")[0], step["run"]) for name, step in steps if "run" in step]
    assert len(runs) > 5
    no_site = not (root / "docs" / "conf.py").exists()
    for name, command in runs:
        assert "\n" not in command.strip(), name
        if not command.startswith(NO_SCRIPT.get(name, ())):
            script = command.split()[0]
            assert script.startswith(("script/", ".ci/")), f"{name}: {command}"
            assert (root / script).exists() or (name == "site" and no_site), f"{name}: {command}"


def test_they_take_actions_of_one_commit_with_its_version(folder, workflows, jobs, steps) -> None:
    """A tag can be moved."""
    used = [step["uses"] for _, step in steps if "uses" in step]
    assert [action for action in used if not PINNED.match(action)] == []
    lines = [
        line.strip()
        for path in folder.iterdir()
        for line in path.read_text(encoding="utf-8").splitlines()
        if "uses: " in line and "uses: ./" not in line
    ]
    assert len(lines) == len(used) > 5
    assert [line for line in lines if not VERSION.search(line)] == []
    assert len({action.partition("@")[0] for action in used}) == len(set(used)), "two commits of one action"
    ours = [job["uses"] for job in jobs.values() if "uses" in job]
    assert all((folder.parents[1] / each).exists() for each in ours)


def test_they_may_do_no_more_than_they_need(workflows, jobs, steps) -> None:
    assert {name for name, found in workflows.items() if found["permissions"] != {}} == set()
    for name, job in jobs.items():
        rights = job["permissions"]
        assert rights.items() <= RIGHTS.items(), name
        assert ("id-token" in rights) == (name in WITH_IDENTITY), name
        assert ("pages" in rights) == (name == "site.publish"), name
    assert [name for name, step in steps if name in WITH_IDENTITY and "run" in step] == []
    checkouts = [step for _, step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)
    text = yaml.safe_dump(list(workflows.values()))
    assert "secrets." not in text
    assert "pull_request_target" not in text


def test_they_end_and_give_way(workflows, jobs) -> None:
    assert all(0 < job["timeout-minutes"] <= 180 for job in jobs.values() if "steps" in job)
    groups = [found["concurrency"]["group"] for found in workflows.values()]
    assert len(set(groups)) == len(groups), "a workflow that another one uses would wait for it for ever"
    cancelled = workflows["release"]["concurrency"]["cancel-in-progress"]
    assert cancelled is False


def test_every_python_that_the_project_names_is_tried(workflows, root) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    found = workflows["tests"]["jobs"]
    assert found["quick"]["strategy"]["matrix"]["python"] == named
    lowest = found["lowest"]["strategy"]["matrix"]["python"]
    bounds = set(re.findall(r"python_version >= '(3\.\d+)'", (root / "pyproject.toml").read_text()))
    assert lowest == [named[0], *sorted(bounds)]
    assert found["macos"]["continue-on-error"] is True


def test_a_tag_is_published_only_as_it_was_tried(workflows) -> None:
    release = workflows["release"]
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["build"]["uses"] == "./.github/workflows/wheels.yaml"
    publish = release["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert publish["environment"]["name"] == "pypi"
    download, upload = publish["steps"]
    kept = workflows["wheels"]["jobs"]["build"]["steps"][-1]["with"]
    assert download["with"]["name"] == kept["name"]
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"]["attestations"] is True


def test_new_versions_of_what_they_use_are_offered(root) -> None:
    offered = yaml.safe_load((root / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    kinds = {each["package-ecosystem"]: each["directory"] for each in offered}
    assert kinds == {"github-actions": "/", "pip": "/", "npm": "/web", "docker": "/"}
    assert (root / "web" / "package.json").exists()


@pytest.mark.parametrize("name", ["mistake.yml", "wish.yml"])
def test_what_issues_ask_for_is_a_form(root, name) -> None:
    form = yaml.safe_load((root / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8"))
    assert form.keys() == {"name", "description", "body"}
    fields = [each for each in form["body"] if each["type"] != "markdown"]
    ids = [each["id"] for each in fields]
    assert len(set(ids)) == len(ids) > 1
    assert all(each["attributes"]["label"] for each in fields)
    assert fields[0]["validations"] == {"required": True}
