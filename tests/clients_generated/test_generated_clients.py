"""Clients that are generated from docs/openapi.json compile, strictly, and work with a real server. None is shipped.

What a generator does not understand, or makes of the document that does not compile, is a fault of the document.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from forq_trio.http.forq_api.examples import ANSWERS
from support.foreign import SECONDS_MAX, go_caches, install, need, run
from support.real_server import RealServer, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "openapi.json"
TESTS = "generated clients"
LATER_QUEUE = {**ANSWERS["showQueue"], "level": "of_a_later_server"}
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"


@pytest.fixture
def server(tmp_path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db") as server:
        yield server


class _OfLater(BaseHTTPRequestHandler):
    """A server of a later version: it knows one queue, and answers words that docs/openapi.json does not have."""

    def do_GET(self) -> None:
        known = self.path.endswith("/orders")
        answer = LATER_QUEUE if known else {"code": "not_found.of_a_later_server", "message": "no"}
        body = json.dumps(answer).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        pass


@pytest.fixture
def later() -> Iterator[str]:
    """Its URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _OfLater) as served:
        thread = Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


def of_servers(server: RealServer, later: str) -> Mapping[str, str]:
    return {"FORQ_URL": server.url, "FORQ_LATER_URL": later}


def copy(language: str, tmp_path: Path) -> Path:
    folder = tmp_path / language
    shutil.copytree(HERE / language, folder)
    shutil.copy(DOCUMENT, folder)
    return folder


@pytest.mark.timeout(SECONDS_MAX)
def test_a_typescript_client(server, later, tmp_path) -> None:
    node, npm = need(TESTS, "node", "nodejs"), need(TESTS, "npm", "npm")
    folder = copy("typescript", tmp_path)
    cache = str(tmp_path / "npm")
    install(TESTS, folder, npm, "install", "--no-audit", "--no-fund", npm_config_cache=cache)
    bin = folder / "node_modules" / ".bin"
    said = run(
        folder,
        str(bin / "openapi-typescript"),
        "openapi.json",
        "--default-non-nullable=false",
        "--output",
        "forq.d.ts",
    )
    assert "warn" not in (said.stdout + said.stderr).lower()
    run(folder, str(bin / "tsc"), "--noEmit")
    run(folder, str(bin / "tsc"))
    run(folder, node, "built/smoke.js", **of_servers(server, later))


@pytest.mark.timeout(SECONDS_MAX)
def test_a_go_client(server, later, tmp_path) -> None:
    go = need(TESTS, "go", "golang-go")
    folder = copy("go", tmp_path)
    caches = go_caches(tmp_path)
    install(TESTS, folder, go, "install", OAPI_CODEGEN, GOBIN=str(tmp_path / "bin"), **caches)
    (folder / "forq").mkdir()
    generate = ["-generate", "types,client", "-package", "forq", "-o", "forq/forq.gen.go", "openapi.json"]
    run(folder, str(tmp_path / "bin" / "oapi-codegen"), *generate)
    run(folder, go, "mod", "tidy", **caches)
    run(folder, go, "vet", "./...", **caches)
    run(folder, go, "build", "-o", "smoke", ".", **caches)
    run(folder, str(folder / "smoke"), **of_servers(server, later))
