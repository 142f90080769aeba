"""The compose files: what they name is there, and each service is as closed as the image allows."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from forq_trio.app import FORCED_EXIT_SECONDS
from forq_trio.config.load import load
from forq_trio.config.sources import SECRET_FILES, read_environment
from forq_trio.model import limits
from forq_trio.model.durations import parse_duration
from support.real_server import SECRET

FILES = ("compose.yaml", "compose.postgres.yaml", "compose.observe.yaml")
OF_OTHERS = {
    "./deploy/prometheus/prometheus.yml",
    "./deploy/prometheus/rules",
    "./deploy/grafana/provisioning",
    "./deploy/grafana/dashboards",
}
"""What compose.observe.yaml mounts."""


@pytest.fixture(scope="session")
def compose(root: Path) -> dict[str, dict[str, Any]]:
    return {name: yaml.safe_load((root / name).read_text(encoding="utf-8")) for name in FILES}


def servers(compose: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The services that are ours, each with all it needs."""
    found = [each for file in compose.values() for each in file["services"].values()]
    return [each for each in found if each.get("image") == "forq-trio"]


def mounts(file: dict[str, Any]) -> list[str]:
    """What services mount: folders, files and volumes."""
    return [each for service in file["services"].values() for each in service.get("volumes", [])]


def test_there_are_three_servers(compose) -> None:
    assert len(servers(compose)) == 3


def test_a_server_is_as_closed_as_its_image_allows(compose) -> None:
    for each in servers(compose):
        assert each["read_only"] is True
        assert each["tmpfs"] == ["/tmp"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
        assert "user" not in each  # that of the image


def test_a_server_has_the_time_and_the_files_that_it_takes(compose) -> None:
    files = limits.CONNECTIONS_MAX + limits.UI_CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX
    for each in servers(compose):
        assert parse_duration(each["stop_grace_period"]) > FORCED_EXIT_SECONDS * 1_000
        assert each["ulimits"]["nofile"] >= files


def test_every_variable_of_a_server_is_a_setting(compose) -> None:
    ours = [service for file in compose.values() for service in file["services"].values()]
    environments = [each["environment"] for each in ours if "FORQ" in str(each.get("environment"))]
    assert len(environments) == 4
    for each in environments:
        settings = {name: value for name, value in each.items() if name not in SECRET_FILES}
        assert read_environment(settings).warnings == []
        load(environ=settings | {"FORQ_AUTH_SECRET": SECRET, "FORQ_METRICS_AUTH_SECRET": SECRET})
        assert all(isinstance(value, str) for value in each.values())


def test_no_file_has_a_secret(compose) -> None:
    """Each is a file in a folder that neither git nor a build takes, and a variable names where it is mounted."""
    for name, file in compose.items():
        declared = file["secrets"]
        assert {each["file"] for each in declared.values()} == {f"secrets/{secret}" for secret in declared}
        used = [
            each if isinstance(each, str) else each["source"]
            for service in file["services"].values()
            for each in service.get("secrets", [])
        ]
        assert {*used} == {*declared}, name
        for service in file["services"].values():
            named = re.findall(r"/run/secrets/(\w+)", str(service.get("environment")))
            assert {*named} <= {*filter(lambda each: isinstance(each, str), service.get("secrets", []))}


def test_the_folder_of_secrets_is_nobodys_but_the_readers(root: Path) -> None:
    assert "/secrets/" in (root / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_ports_are_open_to_this_machine_alone(compose) -> None:
    ports = [
        each
        for file in compose.values()
        for service in file["services"].values()
        for each in service.get("ports", [])
    ]
    assert len(ports) == 5
    assert all(each.startswith("127.0.0.1:") for each in ports)


def test_what_is_mounted_is_there(compose, root: Path) -> None:
    there = {each.split(":")[0] for name in FILES[:2] for each in mounts(compose[name]) if each[0] == "."}
    assert there == {"./deploy/nginx/two-servers.conf", "./deploy/nginx/locations.conf"}
    assert {each for each in there if not (root / each).is_file()} == set()
    named = {each.split(":")[0] for each in mounts(compose["compose.observe.yaml"]) if each[0] == "."}
    assert named == OF_OTHERS
    if not (root / "deploy/prometheus").exists():
        pytest.skip("deploy/prometheus is not here yet")
    assert {each for each in OF_OTHERS if not (root / each).exists()} == set()


def test_every_volume_is_declared_and_used(compose) -> None:
    for name, file in compose.items():
        used = {each.split(":")[0] for each in mounts(file) if each[0] != "."}
        assert used == {*file.get("volumes", {})}, name


def test_what_a_service_waits_for_says_when_it_is_healthy(compose) -> None:
    """The image says so for ours."""
    for file in compose.values():
        for service in file["services"].values():
            for other, condition in service.get("depends_on", {}).items():
                waited_for = file["services"][other]
                is_ours = other.startswith("forq")
                assert condition == {"condition": "service_healthy"}
                assert is_ours or "test" in waited_for["healthcheck"], other


def test_nginx_knows_the_servers(compose, root: Path) -> None:
    text = (root / "deploy/nginx/two-servers.conf").read_text(encoding="utf-8")
    names = {name for name in compose["compose.postgres.yaml"]["services"] if name.startswith("forq-")}
    for port in ("8080", "8081"):
        assert {*re.findall(rf"server ([\w-]+):{port} ", text)} == names
    assert compose["compose.postgres.yaml"]["services"]["nginx"]["ports"] == ["127.0.0.1:8080:80"]
    assert "listen 80;" in text


@pytest.mark.parametrize(
    "files", [FILES[:1], FILES[1:2], (FILES[0], FILES[2])], ids=["one", "postgres", "observe"]
)
def test_docker_reads_them(root: Path, files: tuple[str, ...]) -> None:
    """Its own check, where it is."""
    if (
        subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
        if shutil.which("docker")
        else True
    ):
        pytest.skip("docker compose is not here")
    options = [f"--file={name}" for name in files]
    done = subprocess.run(
        ["docker", "compose", *options, "config", "--quiet"], cwd=root, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_says_what_the_files_say(compose, root: Path) -> None:
    """The commands above each file, word by word."""
    page = (root / "docs/containers.md").read_text(encoding="utf-8")
    for name in FILES:
        head = (root / name).read_text(encoding="utf-8").split("\n#\n")[1]
        commands = [line.removeprefix("#   ") for line in head.splitlines() if line.startswith("#   ")]
        assert len(commands) >= 2
        for command in commands:
            assert f"\n{command}\n" in page, command
