"""The Dockerfile as it is read here, and what reads it: it refuses whatever it would not carry out."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from forq_trio.model import limits
from forq_trio.model.durations import parse_duration

from .dockerfile import ImageConfig, NotUnderstood, Stage, exec_form, expand, ignored, parse, stages


@pytest.fixture(scope="session")
def text(root: Path) -> str:
    return (root / "Dockerfile").read_text(encoding="utf-8")


def last_stage(text: str, **arguments: str) -> Stage:
    *_, stage = stages(text, arguments)
    stage.config.env = {"PATH": "/usr/bin"}  # of the base
    for each in stage.instructions:
        stage.take(each, arguments)
    return stage


@pytest.fixture
def config(text: str) -> ImageConfig:
    return last_stage(text).config


def test_signals_and_health_checks_reach_the_server_itself(config: ImageConfig) -> None:
    assert config.entrypoint == ["/opt/forq/bin/forq"]
    assert config.cmd == ["serve"]
    assert config.health == ["/opt/forq/bin/forq", "health"]


def test_the_health_check_waits_longer_than_the_server_takes_for_it(config: ImageConfig) -> None:
    assert parse_duration(config.health_flags["timeout"]) > limits.HEALTH_SECONDS_MAX * 1_000
    assert parse_duration(config.health_flags["interval"]) == 30_000


def test_it_runs_as_a_user_without_a_name_that_has_one_volume(config: ImageConfig) -> None:
    assert config.user == "10001:10001"  # Kubernetes refuses to judge a name
    assert config.volumes == ["/var/lib/forq"]
    assert config.ports == [8080, 8081]


def test_the_image_holds_no_secret(text: str, config: ImageConfig) -> None:
    assert "SECRET" not in text.upper()
    assert {name for name in config.env if name.startswith("FORQ_")} == {"FORQ_API_ADDR", "FORQ_UI_ADDR"}


def test_what_is_not_copied_from_the_base_of_the_build_is_not_there(text: str) -> None:
    assert [stage.base for stage in stages(text, {})] == ["python:3.13-slim", "scratch"]
    assert [stage.base for stage in stages(text, {"PYTHON": "mine:1"})] == ["mine:1", "scratch"]


def test_the_labels(text: str, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    labels = last_stage(text, VERSION="1.2.3", REVISION="abc").config.labels
    names = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
    assert names.keys() == {"title", "description", "licenses", "version", "revision"}
    assert (names["title"], names["licenses"]) == (project["name"], project["license"])
    assert (names["version"], names["revision"]) == ("1.2.3", "abc")


def test_what_is_copied_is_in_the_build_and_nothing_else_is(text: str, root: Path) -> None:
    patterns = (root / ".dockerignore").read_text(encoding="utf-8")
    first, *_ = stages(text, {})
    copied = {word for each in first.instructions if each.name == "COPY" for word in each.text.split()[:-1]}
    there = [str(path.relative_to(root)) for path in (*root.iterdir(), *(root / "deploy").iterdir())]
    assert {path for path in there if not ignored(path, patterns)} == copied
    assert ignored("forq_trio/cli/__pycache__/x.pyc", patterns)
    assert not ignored("forq_trio/cli/health.py", patterns)
    assert ignored("secrets/auth_secret", patterns)
    assert ignored(".git", patterns)


def test_what_the_package_is_built_from_is_copied(text: str, root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    readme = [
        each["path"]
        for each in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]
    ]
    licences = {name.split("/")[0] for name in project["project"]["license-files"]}
    assert {
        name
        for name in (*packages, *readme, *licences, "pyproject.toml")
        if not re.search(rf"^COPY .*\b{name}\b", text, re.M)
    } == set()


@pytest.mark.parametrize(
    "text",
    [
        "# syntax=docker/dockerfile:1\nFROM a",
        "FROM a\nADD x /x",
        'FROM a\nSHELL ["sh"]',
        "FROM a\nRUN --mount=type=cache,target=/x make",
        "FROM --platform=linux/amd64 a",
        "FROM a\nCOPY --chown=1 x /x",
        'FROM a\nHEALTHCHECK --start-interval=1s CMD ["x"]',
        "RUN x",
    ],
)
def test_what_is_not_carried_out_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstood):
        list(stages(text, {}))


@pytest.mark.parametrize(
    "line",
    ["ENTRYPOINT forq serve", "CMD serve", "HEALTHCHECK CMD forq", "HEALTHCHECK NONE", "ENV A", "ENV A=$B"],
)
def test_a_form_that_is_not_carried_out_is_refused(line: str) -> None:
    with pytest.raises(NotUnderstood):
        last_stage(f"FROM a\n{line}")


def test_lines_are_joined_and_comments_between_them_left_out() -> None:
    (one,) = parse("RUN a \\\n# why\n  && b\n")
    assert one.text.split() == ["a", "&&", "b"]
    assert exec_form('["a", "b"]') == ["a", "b"]
    assert expand("${A}:$B", {"A": "1", "B": "2"}) == "1:2"


def test_the_last_stage_has_nothing_of_the_builders(text: str) -> None:
    """No cache of pip and no source: it takes two folders of the stage before, and runs nothing."""
    *_, last = stages(text, {})
    copied = [(each.flags.get("from"), each.text) for each in last.instructions if each.name == "COPY"]
    assert copied == [("build", "/image /"), ("build", "/opt/forq /opt/forq")]
    assert "RUN" not in {each.name for each in last.instructions}


def test_the_image_has_the_program_that_ends_a_pod(root: Path) -> None:
    programs = runpy.run_path(str(root / "deploy/image/root.py"))["PROGRAMS"]
    pods = (root / "deploy/kubernetes/postgres/deployment.yaml").read_text(encoding="utf-8")
    (command,) = re.findall(r"command: (\[.*\])", pods)
    assert exec_form(command)[0] in programs
