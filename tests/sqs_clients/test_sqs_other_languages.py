"""Clients of other languages over SQS: Node's SDK with sqs-consumer and sqs-producer, Go's SDK, and Java's libraries.

Each program lives from the first message to an empty queue, and prints `alive` at its end.
"""

import shutil
from pathlib import Path

import pytest

from support.foreign import SECONDS_MAX, go_caches, install, need, run
from support.sqs_clients import PROGRAMS, TESTS

pytestmark = [pytest.mark.process, pytest.mark.tier2]

JAVA_PACKAGE = "openjdk-17-jdk-headless"


def copy(language: str, tmp_path: Path) -> Path:
    folder = tmp_path / language
    shutil.copytree(PROGRAMS.parent / language, folder)
    return folder


@pytest.mark.timeout(SECONDS_MAX)
def test_node(variables, tmp_path) -> None:
    node, npm = need(TESTS, "node", "nodejs"), need(TESTS, "npm", "npm")
    folder = copy("node", tmp_path)
    install(TESTS, folder, npm, "install", "--no-audit", "--no-fund", npm_config_cache=str(tmp_path / "npm"))
    assert run(folder, node, "smoke.js", **variables).stdout == "alive\n"


@pytest.mark.timeout(SECONDS_MAX)
def test_go(variables, tmp_path) -> None:
    go = need(TESTS, "go", "golang-go")
    folder = copy("go", tmp_path)
    caches = go_caches(tmp_path)
    install(TESTS, folder, go, "mod", "tidy", **caches)
    run(folder, go, "build", "-o", "smoke", ".", **caches)
    assert run(folder, str(folder / "smoke"), **variables).stdout == "alive\n"


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs one of the Java programs, without its name."""
    mvn, program = need(TESTS, "mvn", "maven"), need(TESTS, "java", JAVA_PACKAGE)
    need(TESTS, "javac", JAVA_PACKAGE)
    folder = copy("java", tmp_path_factory.mktemp("maven"))
    classes = folder / "target" / "classes"
    get = ["dependency:build-classpath", "-Dmdep.outputFile=classpath"]
    install(TESTS, folder, mvn, "-q", "-B", "dependency:go-offline")
    run(folder, mvn, "-q", "-B", "-o", "compile", *get)
    return [program, "-classpath", f"{classes}:{(folder / 'classpath').read_text()}"]


@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("program", ["Batches", "Listener", "Jms"])
def test_java(program, java, variables, tmp_path) -> None:
    said = run(tmp_path, *java, f"smoke.{program}", **variables).stdout
    assert said.splitlines()[-1] == "alive", said
