"""deploy/systemd: what systemd says of the unit, and the server under its restrictions."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from forq_trio.app import FORCED_EXIT_SECONDS
from forq_trio.config.load import load
from forq_trio.config.sources import SECRET_FILES, read_environment
from forq_trio.model import limits
from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment, started

EXPOSURE_MAX = 2.0


@pytest.fixture(scope="session")
def unit(root: Path) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False)
    found.optionxform = str  # type: ignore[assignment,method-assign]  # names are written as systemd knows them
    found.read(root / "deploy/systemd/forq.service", encoding="utf-8")
    return found


@pytest.fixture(scope="session")
def text(root: Path) -> str:
    return (root / "deploy/systemd/forq.service").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def systemd_analyze() -> str:
    found = shutil.which("systemd-analyze")
    return found or lacks("the unit", "systemd-analyze (on Debian: apt install systemd)")


def test_it_starts_again_and_has_the_time_to_stop(unit: configparser.RawConfigParser) -> None:
    service = unit["Service"]
    assert int(service["TimeoutStopSec"]) > FORCED_EXIT_SECONDS
    assert service["Restart"] == "always"
    assert "RestartPreventExitStatus" not in service  # a database may be there a moment later
    assert int(unit["Unit"]["StartLimitIntervalSec"]) == 0
    files = limits.CONNECTIONS_MAX + limits.UI_CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX
    assert int(service["LimitNOFILE"]) >= files


def test_its_variables_are_those_of_the_server(text: str) -> None:
    variables = dict(re.findall(r"^Environment=(\w+)=(\S+)$", text, re.MULTILINE))
    assert variables == {"FORQ_AUTH_SECRET_FILE": "%d/auth_secret", "FORQ_CONFIG": "/etc/forq/forq.toml"}
    assert variables.keys() & SECRET_FILES.keys() == {"FORQ_AUTH_SECRET_FILE"}
    assert read_environment({"FORQ_CONFIG": "x"}).warnings == []
    assert "LoadCredential=auth_secret:/etc/forq/auth_secret\n" in text


def test_its_settings_are_those_of_the_server(root: Path) -> None:
    loaded = load({}, {"FORQ_AUTH_SECRET": SECRET}, root / "deploy/systemd/forq.toml")
    assert loaded.warnings == ()
    assert str(loaded.config.db_path) == "/var/lib/forq/forq.db"  # StateDirectory=forq
    assert loaded.config.api_addr.is_loopback


def test_nothing_writes_a_log_that_somebody_has_to_rotate(text: str) -> None:
    assert not re.search(r"^Standard(Output|Error)=|^LogsDirectory=", text, re.MULTILINE)


def test_systemd_finds_no_mistake(systemd_analyze: str, text: str, tmp_path: Path) -> None:
    """Of the programs that it names only a shell is here."""
    (tmp_path / "forq.service").write_text(
        text.replace("/opt/forq/bin/forq serve", "/bin/sh"), encoding="utf-8"
    )
    command = [systemd_analyze, "verify", "--recursive-errors=no", tmp_path / "forq.service"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "forq.service" in line]
    assert (done.returncode, said) == (0, [])


def test_a_mistake_is_found(systemd_analyze: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "forq.service").write_text(
        text.replace("ProtectHome=yes", "ProtectHome=maybe"), encoding="utf-8"
    )
    command = [systemd_analyze, "verify", "--recursive-errors=no", tmp_path / "forq.service"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Failed to parse protect home value" in done.stderr


def test_it_is_little_exposed(systemd_analyze: str, root: Path) -> None:
    """By systemd's own measure, from 0 to 10; it fails above the threshold, which is a tenth of what it takes."""
    command = [
        systemd_analyze,
        "security",
        "--offline=true",
        f"--threshold={int(EXPOSURE_MAX * 10)}",
        "--no-pager",
    ]
    done = subprocess.run(
        [*command, root / "deploy/systemd/forq.service"], capture_output=True, text=True, check=False
    )
    (exposure,) = re.findall(r"Overall exposure level for forq.service: ([\d.]+)", done.stdout)
    assert float(exposure) <= EXPOSURE_MAX
    assert done.returncode == 0


def system_calls(systemd_analyze: str, unit_text: str) -> set[str]:
    """What SystemCallFilter allows: sets, without those of the lines that begin with ~."""
    said = subprocess.run(
        [systemd_analyze, "syscall-filter", "--no-pager"], capture_output=True, text=True, check=True
    )
    sets: dict[str, list[str]] = {}
    for line in said.stdout.splitlines():
        if line.startswith("@"):
            sets[line.strip()] = current = []
        elif line.startswith("    ") and not line.strip().startswith("#"):
            current.append(line.strip())

    def members(name: str) -> set[str]:
        if not name.startswith("@"):
            return {name}
        return set().union(*map(members, sets[name]))

    allowed: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit_text, re.MULTILINE):
        names = set().union(*map(members, line.removeprefix("~").split()))
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed | members("@default")


def confining(place: Path, names: set[str], families: str) -> list[str]:
    """The beginning of a command line whose program may make these system calls alone."""
    (place / "allowed").write_text("\n".join(sorted(names)), encoding="utf-8")
    return [sys.executable, str(Path(__file__).with_name("confine.py")), str(place / "allowed"), families]


@pytest.mark.process
def test_it_serves_under_the_restrictions_that_the_kernel_keeps(
    systemd_analyze: str, text: str, unit: configparser.RawConfigParser, tmp_path: Path
) -> None:
    """The filter of system calls, families of sockets, no memory that is written and run: as systemd sets them."""
    families = unit["Service"]["RestrictAddressFamilies"].split()
    confine = confining(tmp_path, system_calls(systemd_analyze, text), ",".join(families))
    serve = [sys.executable, "-m", "forq_trio.cli", "serve", "--api-addr", "127.0.0.1:0"]
    env = environment(FORQ_DB_PATH=str(tmp_path / "forq.db"), FORQ_ENV="local")
    with subprocess.Popen([*confine, *serve], env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            event = started(process)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            assert "Seccomp:\t2\n" in status
            assert "NoNewPrivs:\t1\n" in status
            url, headers = f"http://{event['api']}/api/v1/queues/q/messages", {"X-API-Key": SECRET}
            with httpx.Client(verify=False, timeout=WAIT_SECONDS_MAX) as client:
                assert client.post(url, json={"content": "m"}, headers=headers).status_code == 204
                assert client.get(url, headers=headers).json()["content"] == "m"
                assert client.get(f"http://{event['ui']}/login").status_code == 200
            backup = [sys.executable, "-m", "forq_trio.cli", "backup", tmp_path / "copy.db"]
            subprocess.run([*confine, *backup], env=env, check=True, capture_output=True)
            process.terminate()
            assert process.wait(WAIT_SECONDS_MAX) == 0
        finally:
            process.kill()


def test_what_the_filter_does_not_allow_fails(systemd_analyze: str, text: str, tmp_path: Path) -> None:
    """So the test above could fail."""
    names = system_calls(systemd_analyze, text)
    assert {"read", "openat", "futex", "epoll_wait"} <= names
    assert {"mount", "chown", "setuid", "ptrace", "bpf", "reboot"} & names == set()
    program = """
import ctypes, errno, mmap, os, socket
def refused(call, *arguments, code=errno.EPERM):
    try:
        call(*arguments)
    except OSError as problem:
        return problem.errno == code
assert refused(os.chown, os.devnull, -1, -1)
assert refused(socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, code=errno.EAFNOSUPPORT)
private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
assert refused(mmap.mmap, -1, 4096, private, mmap.PROT_WRITE | mmap.PROT_EXEC)
"""
    confine = confining(tmp_path, names, "AF_UNIX")
    done = subprocess.run(
        [*confine, sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
