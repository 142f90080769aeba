"""deploy/nginx: it waits long enough and takes as much, and with a real nginx two servers on PostgreSQL are one."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from forq_trio.model import limits
from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, RealServer, real_server
from support.ui_http import logged_in

HEADERS = {"X-API-Key": SECRET}
QUEUE = "/api/v1/queues/q/messages"
MAIN = """
daemon off;
user root;
worker_processes 1;
error_log stderr notice;
pid {place}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    scgi_temp_path {place}/scgi;
    uwsgi_temp_path {place}/uwsgi;
    include {place}/forq.conf;
}}
"""


@pytest.fixture(scope="session")
def texts(root: Path) -> dict[str, str]:
    folder = root / "deploy/nginx"
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.conf")}


def test_it_waits_long_enough_and_takes_as_much(texts: dict[str, str]) -> None:
    api, ui = re.findall(r"location \S*/ {.*?^}", texts["locations.conf"], re.MULTILINE | re.DOTALL)
    assert "proxy_buffering off;" in ui
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", api)
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", texts["locations.conf"])
    assert int(seconds) * 1_000 > limits.WAIT_MS_MAX
    assert int(megabytes) * limits.MIB == limits.BODY_BYTES_MAX


def test_the_path_of_the_admin_ui_is_that_of_its_settings(texts: dict[str, str], root: Path) -> None:
    (path,) = re.findall(r"location (/\w+)/ ", texts["locations.conf"])
    assert f"FORQ_UI_BASE_PATH: {path}\n" in (root / "compose.postgres.yaml").read_text(encoding="utf-8")
    assert f"`FORQ_UI_BASE_PATH={path}`" in (root / "docs/deploy.md").read_text(encoding="utf-8")


def test_both_servers_have_the_locations_and_name_their_upstreams(texts: dict[str, str]) -> None:
    named = {*re.findall(r"proxy_pass http://(\w+);", texts["locations.conf"])}
    for name in ("forq.conf", "two-servers.conf"):
        assert {*re.findall(r"^upstream (\w+) {", texts[name], re.MULTILINE)} == named
        assert "    include /etc/nginx/forq/locations.conf;\n" in texts[name]


@contextmanager
def running(place: Path, root: Path, text: str, changes: Mapping[str, str]) -> Iterator[int]:
    """nginx with this configuration, changed for this machine; yields its port. LISTEN becomes its address."""
    if (nginx := shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")) is None:
        lacks("nginx", "nginx (on Debian: apt install nginx-light)")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        for old, new in {"/etc/nginx/forq": str(root / "deploy/nginx"), **changes}.items():
            assert old in text
            text = text.replace(old, new.replace("LISTEN", f"127.0.0.1:{port}"))
        (place / "forq.conf").write_text(text, encoding="utf-8")
        (place / "nginx.conf").write_text(MAIN.format(place=place), encoding="utf-8")
        command = [nginx, "-p", place, "-e", "stderr", "-c", place / "nginx.conf"]
        # It takes over a socket that listens, so nobody has to wait until it does.
        env = {"NGINX": f"{listener.fileno()};"}
        with subprocess.Popen(
            command, env=env, pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield port
                process.terminate()
                assert process.wait(WAIT_SECONDS_MAX) == 0
            finally:
                process.kill()


@contextmanager
def two_servers(database: str) -> Iterator[tuple[RealServer, RealServer]]:
    """As compose.postgres.yaml starts them."""
    more = {"FORQ_ENV": "local", "FORQ_UI_BASE_PATH": "/forq", "FORQ_TRUST_PROXY_HEADERS": "true"}
    with real_server(database, ui=True, **more) as one, real_server(database, ui=True, **more) as other:
        yield one, other


def ui_of(server: RealServer) -> str:
    assert server.ui_address is not None
    return server.ui_address


@pytest.mark.tier2
@pytest.mark.process
def test_two_servers_behind_nginx_are_one(
    texts: dict[str, str], root: Path, tmp_path: Path, database: str
) -> None:
    """The topology of compose.postgres.yaml, without containers."""
    with two_servers(database) as (one, other):
        changes = {
            "listen 80;": "listen LISTEN;",
            "forq-1:8080": one.address,
            "forq-2:8080": other.address,
            "forq-1:8081": ui_of(one),
            "forq-2:8081": ui_of(other),
        }
        with running(tmp_path, root, texts["two-servers.conf"], changes) as port:
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(
                base_url=url, verify=False, timeout=WAIT_SECONDS_MAX, headers=HEADERS
            ) as client:
                assert client.get("/healthcheck").status_code == 204
                assert client.get("/livez").status_code == 204
                for number in range(10):
                    assert client.post(QUEUE, json={"content": f"m{number}"}).status_code == 204
                received = [client.get(QUEUE).json()["content"] for _ in range(10)]
                assert received == [f"m{number}" for number in range(10)]
                assert client.get("/metrics").status_code == 403
                body = b" " * (limits.BODY_BYTES_MAX + 1)
                assert client.post(QUEUE, content=body).status_code == 413
                with logged_in(f"{url}/forq") as browser:
                    assert browser.get("/").status_code == 200
                assert one.stop() == 0
                statuses = [client.get("/healthcheck").status_code for _ in range(20)]
                assert statuses.count(502) <= 1  # then it is left out
                assert {*statuses} <= {204, 502}


@pytest.mark.tier2
@pytest.mark.process
def test_one_server_behind_nginx_with_tls(texts: dict[str, str], root: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("queue.example.org")
    certificate.private_key_pem.write_to_path(tmp_path / "queue.key")
    for each in certificate.cert_chain_pems:
        each.write_to_path(tmp_path / "queue.pem", append=True)
    with real_server(tmp_path / "forq.db", ui=True) as server:
        changes = {
            "listen 443 ": "listen LISTEN ",
            "/etc/ssl": str(tmp_path),
            "127.0.0.1:8080": server.address,
            "127.0.0.1:8081": ui_of(server),
        }
        with (
            running(tmp_path, root, texts["forq.conf"], changes) as port,
            httpx.Client(verify=False, http2=True, timeout=WAIT_SECONDS_MAX, headers=HEADERS) as client,
        ):
            answer = client.get(f"https://127.0.0.1:{port}/healthcheck")
            assert (answer.status_code, answer.http_version) == (204, "HTTP/2")
            assert client.post(f"https://127.0.0.1:{port}{QUEUE}", json={"content": "m"}).status_code == 204
            assert client.get(f"https://127.0.0.1:{port}{QUEUE}").json()["content"] == "m"
