"""A small Forq in memory that follows the API's document, for tests that need to decide what a server does.

It knows no delays, leases or back-off beyond their bookkeeping: what a queue does is tested elsewhere; here only the
wire counts. Every request is kept in `requests`; `answers` holds prepared answers that come before its own.
"""

import json
import re
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

SECRET = "a-secret-that-has-thirty-two-characters"
NOW_MS = 1_700_000_000_000

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Stored:
    id: str
    sequence: int
    content: str
    process_after: int | None
    attempts: int = 0
    receipt: str | None = None
    last_error: str | None = None


@dataclass
class FakeForq:
    answers: deque[Answer] = field(default_factory=deque)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    queues: dict[str, list[Stored]] = field(default_factory=dict)
    sequence: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """The answer to one request; header names in lower case."""
        parts = urlsplit(target)
        members = json.loads(body) if body else None
        with self.changed:
            self.requests.append((method, target, members))
            if self.answers:
                return self.answers.popleft()
            if parts.path == "/healthcheck":
                return 204, {}, b""
            if headers.get("x-api-key") != SECRET:
                return error(401, "unauthorized")
            if parts.path == "/api/v1/queues":
                return ok({"queues": [self.info(queue) for queue in sorted(self.queues)]})
            found = re.fullmatch(r"/api/v1/queues/([^/]+)(?:/(.+))?", parts.path)
            assert found is not None, target
            queue, action = unquote(found[1]), found[2]
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", queue):
                return error(400, "bad_request.queue.invalid_name")
            if method == "GET":
                return self.look(queue, action, parse_qs(parts.query))
            return self.act(queue, action.removeprefix("messages/"), members)

    def info(self, queue: str) -> dict[str, Any]:
        stored = self.queues.get(queue, [])
        processing = sum(message.receipt is not None for message in stored)
        return {
            "queue": queue,
            "isDlq": queue.endswith("-dlq"),
            "ready": len(stored) - processing,
            "delayed": 0,
            "processing": processing,
            "failed": 0,
            "waiting": 0,
        }

    def look(self, queue: str, action: str | None, query: dict[str, list[str]]) -> Answer:
        stored = self.queues.get(queue, [])
        if action is None:
            return ok(self.info(queue) | {"oldestReadyAgeMs": 5 if stored else None})
        if action == "peek":
            ready = [message for message in stored if message.receipt is None]
            return ok({"messages": [view(queue, each) for each in ready[: int(query["limit"][0])]]})
        message_id = action.removeprefix("messages/")
        for message in stored:
            if message.id == message_id:
                return ok(view(queue, message))
        return error(404, "not_found.message")

    def act(self, queue: str, action: str, members: dict[str, Any]) -> Answer:
        if action == "batch":
            if queue.endswith("-dlq"):
                return error(400, "bad_request.queue.produce_to_dlq")
            return ok({"results": [self.store(queue, message) for message in members["messages"]]})
        if action == "receive":
            self.changed.wait_for(lambda: self.ready(queue), members["waitMs"] / 1000)
            return ok({"messages": [self.claim(each) for each in self.ready(queue)[: members["max"]]]})
        return ok(
            {"results": [self.settle(queue, action, receipt, members) for receipt in members["receipts"]]}
        )

    def store(self, queue: str, message: dict[str, Any]) -> dict[str, Any]:
        if len(message["content"].encode()) > 256 * 1024:
            return {"code": "bad_request.body.content.exceeds_limit"}
        if message.get("processAfter", NOW_MS) < NOW_MS:
            return {"code": "bad_request.body.processAfter.in_past"}
        self.sequence += 1
        stored = Stored(str(uuid.uuid4()), self.sequence, message["content"], message.get("processAfter"))
        self.queues.setdefault(queue, []).append(stored)
        self.changed.notify_all()
        return {"id": stored.id, "sequence": stored.sequence}

    def ready(self, queue: str) -> list[Stored]:
        return [message for message in self.queues.get(queue, []) if message.receipt is None]

    def claim(self, message: Stored) -> dict[str, Any]:
        message.attempts += 1
        message.receipt = str(uuid.uuid4())
        return {
            "id": message.id,
            "content": message.content,
            "receipt": message.receipt,
            "attempts": message.attempts,
            "sequence": message.sequence,
            "receivedAt": NOW_MS,
            "leaseUntil": NOW_MS + 300_000,
        }

    def settle(self, queue: str, verb: str, receipt: str, members: dict[str, Any]) -> dict[str, Any]:
        try:
            uuid.UUID(receipt)
        except ValueError:
            return {"receipt": receipt, "ok": False, "code": "bad_request.receipt.invalid"}
        for message in self.queues.get(queue, []):
            if message.receipt == receipt:
                break
        else:
            return {"receipt": receipt, "ok": False, "code": "not_found.message"}
        if verb == "extend":
            return {"receipt": receipt, "ok": True, "leaseUntil": NOW_MS + members["leaseMs"]}
        message.receipt = None
        if verb == "ack":
            self.queues[queue].remove(message)
        elif verb == "nack":
            message.last_error = members.get("reason")
        else:
            assert verb == "release"
            message.attempts -= 1
        return {"receipt": receipt, "ok": True}


def view(queue: str, message: Stored) -> dict[str, Any]:
    return {
        "id": message.id,
        "queue": queue,
        "sequence": message.sequence,
        "status": "ready" if message.receipt is None else "processing",
        "content": message.content,
        "attempts": message.attempts,
        "priority": 100,
        "receivedAt": NOW_MS,
        "processAfter": NOW_MS,
        "updatedAt": NOW_MS,
        "expiresAfter": NOW_MS + 86_400_000,
        "processingStartedAt": None,
        "leaseUntil": None,
        "failureReason": None,
        "sourceQueue": None,
        "lastError": message.last_error,
    }


def ok(members: dict[str, Any]) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(members).encode()


def error(status: int, code: str, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json"} | headers, json.dumps({"code": code}).encode()


@contextmanager
def serving(fake: FakeForq) -> Iterator[str]:
    """Serve `fake` on a free port of loopback; yields its URL. Clients have to be closed before the end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            try:
                status, answer_headers, answer = fake.answer(self.command, self.path, headers, body)
            except ConnectionAbortedError:  # a test wants no answer
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in answer_headers.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
