"""The pages about running it: their commands run, and what they configure is there (the files: tests/deploy)."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from forq_trio.config.settings import SETTINGS
from forq_trio.config.sources import SECRET_FILES
from forq_trio.telemetry.rejections import Cause
from support.exposition import all_families
from support.old_files import forq_rows, make_forq_file
from support.real_server import SECRET, RealServer, environment, real_server

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIABLES = {setting.variable for setting in SETTINGS.values()} | SECRET_FILES.keys()
PAGES = ("deploy", "containers", "kubernetes", "backup", "from-forq")
WORDS_MAX = 1_200


@pytest.fixture(scope="session")
def pages(root: Path) -> dict[str, str]:
    return {name: (root / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES}


def blocks(page: str, heading: str, language: str) -> list[str]:
    """The code of one language below a heading, up to the next one."""
    _, _, section = page.partition(f"\n## {heading}\n")
    assert section, heading
    return [text for kind, text in BLOCK.findall(section.partition("\n## ")[0]) if kind == language]


class Shell:
    """Runs commands of the pages, with the pages' directories below the test's own."""

    def __init__(self, place: Path) -> None:
        self._place = place
        for directory in ("var/lib/forq", "var/backups/forq", "mnt/rescued", "bin"):
            (place / directory).mkdir(parents=True)
        command = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m forq_trio.cli "$@"\n'
        (place / "bin" / "forq").write_text(command, encoding="utf-8")
        (place / "bin" / "forq").chmod(0o755)
        self.database = place / "var" / "lib" / "forq" / "forq.db"

    def run(self, commands: str, **variables: str) -> str:
        commands = re.sub(r"(?<=[\s=])(?=/(?:var|mnt)/)", str(self._place), commands)
        commands = commands.replace("/opt/forq/bin/forq", "forq")
        done = subprocess.run(
            ["sh", "-eu", "-c", commands],
            env=environment(PATH=f"{self._place}/bin:{os.environ['PATH']}", **variables),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def send(server: RealServer, content: str) -> None:
    response = httpx.post(
        f"{server.url}/api/v1/queues/q/messages",
        json={"content": content},
        headers={"X-API-Key": SECRET},
        verify=False,
    )
    assert response.status_code == 204


@pytest.mark.tier2
def test_back_up_and_restore(pages: dict[str, str], shell: Shell) -> None:
    (backup,) = blocks(pages["backup"], "Back up", "sh")
    restore, rescue = blocks(pages["backup"], "Restore", "sh")
    (crontab,) = blocks(pages["backup"], "Back up", "")
    with real_server(shell.database) as server:
        send(server, "early")
        assert "is sound: 1 message in 1 queue" in shell.run(backup)
        send(server, "late")
        shell.run(crontab.split(" forq ", 1)[1].replace("\\%", "%"))
        server.process.kill()  # its log stays
        server.process.wait()
    for ending in ("", "-wal"):
        file = Path(f"{shell.database}{ending}")
        (shell.database.parents[3] / "mnt" / "rescued" / file.name).write_bytes(file.read_bytes())
    assert "is sound: 1 message in 1 queue" in shell.run(restore)
    shell.run(rescue)
    assert "is sound: 2 messages in 1 queue" in shell.run(restore.splitlines()[1])
    assert len(list((shell.database.parents[3] / "var" / "backups" / "forq").glob("[1-7].db"))) == 1


@pytest.mark.tier2
def test_the_move_from_forq_and_the_way_back(pages: dict[str, str], shell: Shell, rng) -> None:
    (look,) = blocks(pages["from-forq"], "The move", "sh")[:1]
    start, ask = blocks(pages["from-forq"], "The move", "sh")[1:]
    (back,) = blocks(pages["from-forq"], "The way back", "sh")
    make_forq_file(str(shell.database), forq_rows(rng, 40))
    assert "is sound: 40 messages" in shell.run(look)
    assert shlex.split(start) == ["FORQ_DB_PATH=/var/lib/forq/forq.db", "forq", "serve"]
    with real_server(shell.database) as server:
        said = shell.run(ask.replace("http://localhost:8080", server.url), FORQ_URL=server.url)
        assert said
        send(server, "later")
        assert server.stop() == 0
    assert "what was there is now" in shell.run(back)
    assert "is sound: 40 messages" in shell.run(look)
    assert {file.name.split("-")[0] for file in shell.database.parent.iterdir()} >= {"forq.db.replaced"}


@pytest.mark.tier2
def test_the_installation(pages: dict[str, str], root: Path, tmp_path: Path) -> None:
    """All but what changes the machine, in a directory of its own; skipped where the system has no such Python."""
    commands = blocks(pages["deploy"], "systemd", "sh")[0].splitlines()
    changing = (
        "apt-get ",
        "useradd ",
        "systemctl ",
        "FORQ_CONFIG=/etc/forq/forq.toml /opt/forq/bin/forq health",
    )
    done = [line for line in commands if not line.startswith(changing)]
    assert len(done) == len(commands) - 5
    if subprocess.run(["/usr/bin/python3", "-c", "import ensurepip"], capture_output=True).returncode != 0:
        pytest.skip("/usr/bin/python3 or python3-venv is not here")
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    script = re.sub(r"(?<=[\s])/(?=opt/|etc/)", f"{tmp_path}/", "\n".join(done))
    ran = subprocess.run(["sh", "-eu", "-c", script], cwd=root, capture_output=True, text=True, check=False)
    if "No matching distribution" in ran.stderr:
        pytest.skip("pip reaches no index here")
    assert ran.returncode == 0, ran.stderr
    secret = tmp_path / "etc/forq/auth_secret"
    assert (secret.stat().st_mode & 0o777, len(secret.read_text().strip())) == (0o600, 64)
    assert (tmp_path / "etc/systemd/system/forq.service").exists()
    forq = [tmp_path / "opt/forq/bin/forq", "config", "--json"]
    env = environment(FORQ_CONFIG=str(tmp_path / "etc/forq/forq.toml"), FORQ_AUTH_SECRET_FILE=str(secret))
    env.pop("FORQ_AUTH_SECRET")
    shown = subprocess.run(forq, env=env, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_the_alerts_name_series_and_causes_that_are_there(pages: dict[str, str]) -> None:
    (text,) = blocks(pages["deploy"], "Prometheus", "yaml")
    expressions = " ".join(rule["expr"] for rule in yaml.safe_load(text)["groups"][0]["rules"])
    named = set(re.findall(r"\bforq_\w+", expressions))
    assert named
    assert named <= {family.name for family in all_families()}
    (causes,) = re.findall(r'cause=~"(.*?)"', expressions)
    assert {cause for cause in Cause if re.fullmatch(causes, cause)} == {
        Cause.STORAGE_FULL,
        Cause.STORAGE_LOST,
        Cause.STORAGE_UNAVAILABLE,
        Cause.OVERLOADED,
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_ends_with_how_it_was_tried(pages: dict[str, str], name: str) -> None:
    page = pages[name]
    assert len(page.split()) <= WORDS_MAX
    last = re.findall(r"^## (.+)$", page, re.MULTILINE)[-1]
    assert last == "How it was tried" or "*Tried*" in page.rpartition("\n## ")[2]


@pytest.mark.parametrize("name", PAGES)
def test_every_variable_is_a_setting(pages: dict[str, str], name: str) -> None:
    found = set(re.findall(r"FORQ_[A-Z_]+", pages[name]))
    assert found - VARIABLES <= {"FORQ_CONFIG", "FORQ_URL"}
    if name == "from-forq":
        forqs = {line.split("|")[1] for line in pages[name].splitlines() if line.startswith("| `FORQ_")}
        assert set(re.findall(r"FORQ_[A-Z_]+", " ".join(forqs))) == _of_forq(pages)


def _of_forq(pages: dict[str, str]) -> set[str]:
    """The settings of contract F16."""
    contract = (Path(__file__).parents[2] / "docs" / "compatibility" / "forq.md").read_text(encoding="utf-8")
    section = contract.partition("### F16 ")[2].partition("*Here:*")[0]
    return set(re.findall(r"FORQ_[A-Z_]+", section))
