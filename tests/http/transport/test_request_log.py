"""At log level debug every request is logged as one event, whatever its dialect and its version of HTTP."""

import json
import socket
from pathlib import Path

import httpx
import pytest

from support.real_server import SECRET, RealServer, real_server

KEY = {"X-API-Key": SECRET}


def ask_all(server: RealServer) -> list[tuple[str, str, int]]:
    """Requests of all kinds; returns method, path and status of each as the client saw them."""
    seen = []
    for http2 in (False, True):
        with httpx.Client(
            http2=http2, http1=not http2, base_url=server.url, headers=KEY, verify=False
        ) as client:
            for answer in (
                client.post("/api/v1/queues/q/messages", json={"content": "hunter2"}),
                client.get("/api/v1/queues/q/messages?waitMs=0"),
                client.get("/api/v1/queues/q?colour=red"),
                client.get("/nothing"),
                client.put("/healthcheck"),
                client.get("/api/v1/queues", headers={"X-API-Key": "wrong"}),
                client.post("/send", json={"queue_name": "q", "message_body": "hunter2"}),
                client.get("/send"),
            ):
                seen.append((answer.request.method, answer.url.path, answer.status_code))
    return seen


def refused_by_the_transport(server: RealServer) -> list[tuple[str, str, int]]:
    """Requests that no handler sees: one that is malformed, one that is too large."""
    host, _, port = server.address.rpartition(":")
    with socket.create_connection((host, int(port))) as stream:
        stream.sendall(b"what?\r\n\r\n")
        assert stream.recv(12) == b"HTTP/1.1 400"
    with socket.create_connection((host, int(port))) as stream:
        stream.sendall(
            b"POST /api/v1/queues/q/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"
        )
        answer = stream.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 413")
    assert answer.endswith(b'{"code":"bad_request.body.content.exceeds_limit"}')
    return [("", "", 400), ("POST", "/api/v1/queues/q/messages", 413)]


@pytest.mark.parametrize("level", ["debug", pytest.param("info", marks=pytest.mark.tier2)])
def test_every_request_is_logged(tmp_path: Path, level: str):
    settings = {"FORQ_LOG_LEVEL": level, "FORQ_SASQUATCH_ENABLED": "true"}
    with real_server(tmp_path / "forq.db", **settings) as server:
        seen = [*ask_all(server), *refused_by_the_transport(server)]
        assert server.stop() == 0
        assert server.process.stderr is not None
        text = server.process.stderr.read()
    lines = [json.loads(line) for line in text.splitlines()]
    logged = [line for line in lines if line["event"] == "request.answered"]
    assert [(line["method"], line["path"], line["status"]) for line in logged] == (
        seen if level == "debug" else []
    )
    assert all(line["duration_ms"] >= 0 for line in logged if "client" in line)
    assert not any(secret in text for secret in ("hunter2", SECRET, "colour"))
