"""A real `forq serve` in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from support.processes import WAIT_SECONDS_MAX
from support.real_server import started

from .harness import SECRET


@dataclass
class Server:
    process: subprocess.Popen[str]
    started: dict[str, str]
    client: httpx.Client

    def ask(self, endpoint: str, body: object = None) -> httpx.Response:
        """The answer to a POST; a body that is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.post(f"/{endpoint}", content=content)

    def ok(self, endpoint: str, body: object = None) -> object:
        response = self.ask(endpoint, body)
        assert response.status_code == 200, response.text
        return response.json()

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_SECONDS_MAX)


@contextmanager
def running(*options: str, **variables: str) -> Iterator[Server]:
    """A server that accepts connections on the loopback interface; stopped at the end, so that it cleans up."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FORQ_")}
    command = [
        sys.executable,
        "-m",
        "forq_trio.cli",
        "serve",
        "--api-addr",
        "127.0.0.1:0",
        "--ui-addr",
        "127.0.0.1:0",
        *options,
    ]
    environ = kept | {"FORQ_AUTH_SECRET": SECRET} | variables
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            event = started(process)
            url = f"http://{event['api']}"
            with httpx.Client(
                base_url=url, headers={"x-api-key": SECRET}, timeout=120, verify=False
            ) as client:
                yield Server(process, event, client)
        finally:
            process.terminate()
            try:
                process.wait(WAIT_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
