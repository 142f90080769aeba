"""The programs of docs/frameworks.md take a request of their framework's test client, and the message arrives."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio import ForqClient
from support.django_tasks import for_this_django
from support.in_process import in_process_server
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, environment

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
WORDS_MAX = 1_200
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"^```python\n([\s\S]*?)^```", section, re.MULTILINE)
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}
FILE = re.compile(r"# (\w+\.py)\n")
USED = {
    "Flask": """
from wsgi import app
print(app.test_client().post("/mails", data={"to": "anna"}).status_code)
""",
    "Django": """
import django
from django.test import Client
django.setup()
print(Client().post("/mails", {"to": "anna"}).status_code)
""",
    "FastAPI": """
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # which client of HTTP it prefers is not ours
    from fastapi.testclient import TestClient
from main import app
with TestClient(app) as browser:
    print(browser.post("/mails", json={"to": "anna"}).status_code)
""",
}
WORKERS = {
    "Flask": ("wsgi.py", "shop: to anna\n"),
    "Django": ("forq_trio.worker.django:app", "to anna\n"),
    "FastAPI": ("main.py", "to anna\n"),
}
"""What `forq work` runs, and what the handler writes."""


def run(folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    """What a Python program writes in this folder."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT), DJANGO_SETTINGS_MODULE="settings", **variables),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def write_files(name: str, folder: Path) -> None:
    """Write the programs of a section into the folder: each says at its beginning which file it is."""
    for program in SECTIONS[name]:
        file = FILE.match(program)
        assert file is not None, program
        (folder / file[1]).write_text(for_this_django(program) if name == "Django" else program)


def test_every_program_is_run() -> None:
    assert SECTIONS.keys() == USED.keys() == WORKERS.keys()
    assert len(PAGE.split()) <= WORDS_MAX


@pytest.mark.parametrize("name", USED)
def test_a_request_becomes_a_message_which_a_worker_handles(name: str, tmp_path: Path) -> None:
    write_files(name, tmp_path)
    target, said = WORKERS[name]
    assert f"\nforq work {target} " in PAGE
    with in_process_server() as url:
        assert run(tmp_path, "-c", USED[name], FORQ_URL=url) == (0, "202\n", "")
        with ForqClient(url, SECRET) as client:
            waiting = [each.content for each in client.export("emails").messages]
        assert len(waiting) == 1
        assert "anna" in waiting[0]
        work = ("-m", "forq_trio.cli", "work", target, "--stop-when-empty")
        code, out, err = run(tmp_path, *work, FORQ_URL=url)
        assert (code, err) == (0, "")
        assert out.startswith(said)


@pytest.mark.parametrize("name", USED)
def test_its_test_passes(name: str, tmp_path: Path) -> None:
    """No server is asked."""
    write_files(name, tmp_path)
    options = ("-q", "-W", "error", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    code, out, err = run(tmp_path, "-m", "pytest", *options, FORQ_URL="http://127.0.0.1:1")
    assert (code, err) == (0, ""), out
    assert out.splitlines()[-1].startswith("1 passed"), out


def test_the_table_names_every_option() -> None:
    from forq_trio.worker.django.backend import TaskOptions

    (table,) = re.findall(r"^\| in `OPTIONS` \|(?:.*\n)+?\n", PAGE, re.MULTILINE)
    named = set(re.findall(r"`([A-Z]+)`", re.sub(r"\| in `OPTIONS` ", "", table)))
    assert named == {name.upper() for name in TaskOptions.__struct_fields__}
