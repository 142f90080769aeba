"""The commands of the HTTP reference can be pasted: the server understands each."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.real_server import SECRET, RealServer, environment, real_server

pytestmark = [
    pytest.mark.process,
    pytest.mark.tier2,
    pytest.mark.skipif(shutil.which("curl") is None, reason="the commands use curl"),
]

DOCS = Path(__file__).parents[3] / "docs"
ID = "01890000-0000-7000-8000-000000000000"
SECONDS_MAX = 300
COMMAND = re.compile(r"^### (\S+ \S+)$.*?^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SILENT = "curl() { command curl -s -o /dev/null -w '%{http_code} ' \"$@\"; }\n"
NOT_HERE = {
    "PUT /api/v1/queues/{queue}/table": "400",  # there is no PostgreSQL
    "GET /metrics": "404",  # they are off
}


@pytest.fixture
def server(tmp_path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db") as server:
        yield server


def commands() -> dict[str, str]:
    """Of each operation, in the order of the pages."""
    pages = sorted((DOCS / "reference").glob("http-*.md"))
    return dict(found for page in pages for found in COMMAND.findall(page.read_text(encoding="utf-8")))


@pytest.mark.timeout(SECONDS_MAX)
def test_the_server_understands_every_command(server) -> None:
    document = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    pasted = commands()
    assert pasted.keys() == {
        f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods
    }
    # A receive waits for a message: there are enough.
    first = pasted["POST /api/v1/queues/{queue}/messages"] * 50
    script = SILENT + first + "echo\n" + "echo\n".join(pasted.values()) + "echo\n"
    done = subprocess.run(
        ["bash", "-ec", script],
        env=environment(URL=server.url, KEY=f"X-API-Key: {SECRET}", ID=ID, REDRIVE="r", WORKER=ID),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sent, *answered = done.stdout.splitlines()
    assert sent.split() == ["204"] * 50
    wrong = {}
    for name, status in zip(pasted, answered, strict=True):
        method, _, path = name.partition(" ")
        known = document["paths"][path][method.lower()]["responses"]
        expected = {each for each in known if each not in ("400", "401", "403", "413", "415", "429")}
        if status.strip() not in ({NOT_HERE[name]} if name in NOT_HERE else expected):
            wrong[name] = status
    assert wrong == {}
