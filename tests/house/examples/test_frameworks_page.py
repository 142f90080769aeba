"""The programs of docs/frameworks.md take a request of their framework's test client, and the message arrives."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forq_trio import ForqClient
from support.in_process import in_process_server
from support.real_server import SECRET, environment

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
PROGRAMS = dict(
    re.findall(r"^## (\w+)\n(?:(?!^## |^```python)[\s\S])*?^```python\n([\s\S]*?)^```", PAGE, re.MULTILINE)
)
USED = {
    "Flask": """
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
with TestClient(app) as browser:
    print(browser.post("/mails", json={"to": "anna"}).status_code)
""",
}


def test_every_program_is_run() -> None:
    assert PROGRAMS.keys() == USED.keys()


@pytest.mark.parametrize("name", USED)
def test_a_request_becomes_a_message(name: str, tmp_path: Path) -> None:
    with in_process_server() as url:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAMS[name] + USED[name]],
            cwd=tmp_path,
            env=environment(FORQ_URL=url, PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        with ForqClient(url, SECRET) as client:
            waiting = [each.content for each in client.export("emails").messages]
    assert (done.returncode, done.stderr) == (0, "")
    assert (done.stdout, waiting) == ("202\n", ['{"to":"anna"}'])
