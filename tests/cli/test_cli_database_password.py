"""The password of the database is in nothing that the project writes or answers, whatever fails.

It has characters that URLs, libpq and JSON write in other ways, between pieces that all begin alike: no piece may be
seen, in whatever writing.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.postgres_tls import TlsPostgres, tls_server
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import SECRET, environment
from support.ui_http import logged_in

PIECE = "Xq7"
PASSWORD = "Xq7a@Xq7b%Xq7c'Xq7d\"Xq7e Xq7f/Xq7g?Xq7h#Xq7i\\Xq7j:Xq7k&Xq7l=Xq7m%20Xq7ü"
METRICS_SECRET = "metrics-" + SECRET
ROLE = "queue_server"


@pytest.fixture(scope="module")
def server() -> Iterator[TlsPostgres]:
    with tls_server() as server:
        server.make_role(ROLE, PASSWORD)
        server.make_role("other", "another one")
        server.execute("ALTER DATABASE queue OWNER TO queue_server")
        yield server


def urls(server: TlsPostgres) -> dict[str, str]:
    """URLs of databases that cannot be used, each with the password."""
    plain = f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:{server.port}/queue"
    return {
        "wrong password": server.url("other", PASSWORD),
        "no server": server.url(ROLE, PASSWORD, port="1"),
        "no database": server.url(ROLE, PASSWORD, "nothing"),
        "no host": f"postgresql://{ROLE}:Xq7a%40@no.such.host.invalid/queue",
        "no option": server.url(ROLE, PASSWORD, sslmodus="require"),
        "no time limit": server.url(ROLE, PASSWORD, connect_timeout="soon"),
        "lists that do not fit": server.url(ROLE, PASSWORD, port="1,2,3"),
        "nothing escaped": plain,
        "half escaped": f"postgresql://{ROLE}:Xq7a%zz@127.0.0.1:{server.port}/queue",
        "as an option": f"postgresql://127.0.0.1:{server.port}/queue?user=other&password=Xq7a%40Xq7b",
        "as an option, unescaped": f"postgresql://127.0.0.1:{server.port}/queue?user=other&password=Xq7a%zz",
        "as options, in pieces": f"postgresql://127.0.0.1:{server.port}/queue?password=Xq7a&Xq7b=c&Xq7d",
        "a bracket": f"postgresql://{ROLE}:Xq7a@[::1/queue",
        "libpq's own form": f"host=127.0.0.1 port={server.port} user=other password=Xq7a dbname=queue",
        "another scheme": f"mysql://{ROLE}:Xq7a@127.0.0.1/queue",
    }


COMMANDS = (
    ("migrate",),
    ("serve",),
    ("config",),
    ("move", "--from", "sqlite:FILE"),
    ("move", "--to", "sqlite:FILE"),
    ("outbox", "refused"),
    ("pgq", "check", "orders"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_it(server, forq, monkeypatch, logging_as_before, tmp_path, command):
    monkeypatch.setenv("FORQ_API_ADDR", "127.0.0.1:0")
    monkeypatch.setenv("FORQ_UI_ENABLED", "false")
    words = [word.replace("FILE", str(tmp_path / "q.db")) for word in command]
    for failure, url in urls(server).items():
        monkeypatch.setenv("FORQ_PG_URL" if command[0] == "pgq" else "FORQ_DB_URL", url)
        done = forq(*words)
        assert PIECE not in done.out + done.err, (failure, done)
        assert "Traceback" not in done.err, (failure, done)
        assert (done.code != 0) or command == ("config",), (failure, done)


PROGRAM = """
import os, trio
from forq_trio import open_broker

async def main():
    async with open_broker(os.environ["SHOP_URL"], **{os.environ.get("OPTION", "outbox"): os.environ.get("OTHER")}):
        pass

trio.run(main)
"""


@pytest.mark.tier2
def test_no_traceback_of_a_program_shows_it(server):
    right = server.url(ROLE, PASSWORD)
    cases = [{"SHOP_URL": url} for url in urls(server).values()]
    cases += [
        {"SHOP_URL": right, "OPTION": option, "OTHER": urls(server)[failure]}
        for option in ("listen_url", "replica_url")
        for failure in ("wrong password", "no option", "nothing escaped")
    ]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env=os.environ | case, stderr=subprocess.PIPE, text=True
        )
        for case in cases
    ]
    for case, process in zip(cases, running, strict=True):
        with killed_after(process), process:
            _, said = process.communicate()
        assert PIECE not in said, case
        assert ("StorageOpenError" in said) == (process.returncode != 0), said


class Serving:
    """A server of ours: all that it writes, and how to stop it."""

    def __init__(self, url: str, **more: str) -> None:
        settings = environment(FORQ_DB_URL=url, FORQ_DB_LISTEN_URL=url, FORQ_LOG_LEVEL="debug", **more)
        settings |= {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET}
        command = [sys.executable, "-X", "dev", "-m", "forq_trio.cli", "serve", "--api-addr", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if "server.started" in line:
                self._started.set()
        self._started.set()

    def addresses(self) -> dict[str, Any]:
        """Where it is, once it serves; only of a log of JSON."""
        assert self._started.wait(WAIT_SECONDS_MAX)
        (line,) = (line for line in self.lines if "server.started" in line)
        return json.loads(line)

    def stop(self) -> str:
        """End it, and return all that it wrote."""
        self._started.wait(WAIT_SECONDS_MAX)
        self.process.send_signal(signal.SIGTERM)
        with killed_after(self.process), self.process:
            self._reader.join()
        return "".join(self.lines)


API = (
    ("GET", "/openapi.json", None),
    ("GET", "/api/v1/processes", None),
    ("GET", "/api/v1/settings", None),
    ("GET", "/healthcheck", None),
    ("GET", "/healthcheck?verbose", None),
    ("GET", "/api/v1/queues/q/messages/0", None),
    ("GET", "/api/v1/set-aside", None),
    ("GET", "/api/v1/admin/backups", None),
    ("POST", "/api/v1/queues/q/messages", {"content": "x"}),
    ("POST", "/api/v1/queues/q/messages/receive", {}),
    ("POST", "/api/v1/admin/backups", None),
    ("PUT", "/api/v1/queues/b/table", {"layout": "pgq", "table": "orders"}),
    ("POST", "/api/v1/tokens", {"name": "t", "scopes": ["browse"]}),
)
PAGES = ("/", "/system", "/queue/q", "/queue/q/settings", "/dead", "/workers", "/schedules")


def answers(api: str, browser: httpx.Client) -> Iterator[tuple[str, int, str]]:
    """What every kind of request is answered, with headers."""
    with httpx.Client(
        base_url=f"http://{api}", headers={"X-API-Key": SECRET}, timeout=WAIT_SECONDS_MAX, verify=False
    ) as client:
        for method, path, body in API:
            answer = client.request(method, path, json=body)
            yield path, answer.status_code, f"{answer.headers}{answer.text}"
        answer = client.get("/metrics", headers={"X-API-Key": METRICS_SECRET})
        yield "/metrics", answer.status_code, answer.text
    for path in PAGES:
        answer = browser.get(path)
        yield path, answer.status_code, f"{answer.headers}{answer.text}"


@pytest.mark.tier2
def test_no_answer_page_or_log_shows_it_while_the_database_fails(server):
    url = server.url(ROLE, PASSWORD)
    serving = Serving(url, FORQ_LOG_FORMAT="json", FORQ_ENV="local")
    try:
        where = serving.addresses()
        process = Path(f"/proc/{serving.process.pid}")
        assert PIECE.encode() not in (process / "cmdline").read_bytes()
        with logged_in(f"http://{where['ui']}") as browser:
            seen = list(answers(where["api"], browser))
            assert {path: status for path, status, _ in seen if status >= 500} == {}
            assert "FORQ_DB_URL" in dict((path, text) for path, _, text in seen)["/system"]
            # Its role's password is another one, and its connections are gone.
            server.set_password(ROLE, "another one")
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'queue_server'"
            )
            refused = list(answers(where["api"], browser))
            assert 503 in {status for _, status, _ in refused}
            server.server.stop()
            try:
                away = list(answers(where["api"], browser))
            finally:
                server.server.start()
            assert 503 in {status for _, status, _ in away}
        shown = [path for path, _, text in (*seen, *refused, *away) if PIECE in text]
        assert shown == []
    finally:
        log = serving.stop()
        server.set_password(ROLE, PASSWORD)
    assert '"event": "server.started"' in log or '"event":"server.started"' in log
    assert PIECE not in log
    assert server.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%Xq7%'") == [
        (0,)
    ]


@pytest.mark.parametrize("log_format", ["json", pytest.param("console", marks=pytest.mark.tier2)])
def test_a_server_that_cannot_start_writes_it_nowhere(server, log_format):
    url = urls(server)["wrong password"]
    log = Serving(url, FORQ_LOG_FORMAT=log_format).stop()
    assert "password authentication failed" in log
    assert PIECE not in log
