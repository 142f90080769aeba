"""A small Forq in memory that follows the API's document, for tests that need to decide what a server does.

It knows no delays, leases, priorities or back-off beyond their bookkeeping: what a queue does is tested elsewhere; here
only the wire counts. At random is the last one first. Every request is kept in `requests`; `answers` holds prepared
answers that come before its own.
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

MESSAGE_MEMBERS = {
    "content",
    "processAfter",
    "delayMs",
    "priority",
    "ttlMs",
    "attributes",
    "deduplicationId",
    "deduplicationWindowMs",
    "group",
    "maxAttempts",
    "deadLetterQueue",
}
RECEIVE_MEMBERS = {"max", "waitMs", "leaseMs", "order", "peek"}
DEFAULTS = {
    "leaseMs": 300_000,
    "delayMs": 0,
    "ttlMs": 86_400_000,
    "maxAttempts": 5,
    "backOff": [1_000, 5_000, 15_000, 30_000, 60_000],
    "deadLetterQueue": "",
    "deduplicationWindowMs": 300_000,
    "maxMessages": None,
    "maxBytes": None,
    "overflow": "reject",
    "order": "fifo",
    "groupInFlightMax": None,
}


@dataclass
class Stored:
    id: str
    sequence: int
    content: str
    options: dict[str, Any]
    attempts: int = 0
    receipt: str | None = None
    last_error: str | None = None
    first_received_at: int | None = None

    @property
    def labels(self) -> dict[str, Any]:
        """Attributes and group, where it has them."""
        return {name: self.options[name] for name in ("attributes", "group") if name in self.options}

    @property
    def priority(self) -> int:
        return self.options.get("priority", 100)


@dataclass
class FakeForq:
    answers: deque[Answer] = field(default_factory=deque)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    queues: dict[str, list[Stored]] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
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
            if action == "settings":
                return self.configure(method, queue, members)
            if method == "GET":
                return self.look(queue, action, parse_qs(parts.query))
            if action in (None, "pause", "resume", "purge"):
                return self.administer(queue, action)
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
            "held": 0,
            "bytes": sum(len(message.content.encode()) for message in stored),
            "waiting": 0,
            "paused": queue in self.paused,
        }

    def configure(self, method: str, queue: str, members: dict[str, Any]) -> Answer:
        if method == "DELETE":
            self.settings.pop(queue, None)
            return 204, {}, b""
        settings = self.settings.setdefault(queue, {})
        if method == "PUT":
            if unknown := sorted(members.keys() - DEFAULTS.keys()):
                return error(400, "bad_request.body.unknown_field", field=unknown[0])
            settings.update(members)
        kept = {name: value for name, value in settings.items() if value is not None}
        effective = DEFAULTS | {"deadLetterQueue": f"{queue}-dlq"} | kept
        paused = {"paused": True} if queue in self.paused else {}
        return ok({"settings": kept | paused, "effective": effective | {"paused": queue in self.paused}})

    def administer(self, queue: str, action: str | None) -> Answer:
        stored = self.queues.get(queue, [])
        if action == "purge":
            self.queues.pop(queue, None)
            return ok({"purged": len(stored)})
        if action is None:
            if stored:
                return error(409, "conflict.queue_not_empty")
            self.queues.pop(queue, None)
            self.settings.pop(queue, None)
        elif action == "pause":
            self.paused.add(queue)
        else:
            self.paused.discard(queue)
            self.changed.notify_all()
        return 204, {}, b""

    def look(self, queue: str, action: str | None, query: dict[str, list[str]]) -> Answer:
        stored = self.queues.get(queue, [])
        if action is None:
            return ok(self.info(queue) | {"oldestReadyAgeMs": 5 if stored else None})
        if action == "peek":
            ready = self.ready(queue, query.get("order", ["fifo"])[0])
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
            if unknown := sorted(members.keys() - RECEIVE_MEMBERS):
                return error(400, "bad_request.body.unknown_field", field=unknown[0])

            def claimable() -> list[Stored]:
                return [] if queue in self.paused else self.ready(queue, members.get("order", "fifo"))

            self.changed.wait_for(claimable, members["waitMs"] / 1000)
            ready = claimable()
            return ok({"messages": [self.claim(each) for each in ready[: members["max"]]]})
        return ok(
            {"results": [self.settle(queue, action, receipt, members) for receipt in members["receipts"]]}
        )

    def store(self, queue: str, message: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(message.keys() - MESSAGE_MEMBERS):
            return {"code": "bad_request.body.unknown_field", "field": unknown[0]}
        if len(message["content"].encode()) > 256 * 1024:
            return {"code": "bad_request.body.content.exceeds_limit"}
        if message.get("processAfter", NOW_MS) < NOW_MS:
            return {"code": "bad_request.body.processAfter.in_past"}
        stored = self.queues.setdefault(queue, [])
        for each in stored:
            if message.get("deduplicationId", "") == each.options.get("deduplicationId"):
                return {"id": each.id, "sequence": each.sequence, "duplicate": True}
        self.sequence += 1
        options = {name: value for name, value in message.items() if name != "content"}
        new = Stored(str(uuid.uuid4()), self.sequence, message["content"], options)
        stored.append(new)
        self.changed.notify_all()
        return {"id": new.id, "sequence": new.sequence}

    def ready(self, queue: str, order: str = "fifo") -> list[Stored]:
        found = [message for message in self.queues.get(queue, []) if message.receipt is None]
        return found[::-1] if order == "shuffle" else found

    def claim(self, message: Stored) -> dict[str, Any]:
        message.attempts += 1
        message.receipt = str(uuid.uuid4())
        message.first_received_at = message.first_received_at or NOW_MS
        return {
            "id": message.id,
            "content": message.content,
            "receipt": message.receipt,
            "attempts": message.attempts,
            "sequence": message.sequence,
            "receivedAt": NOW_MS,
            "leaseUntil": NOW_MS + 300_000,
            "priority": message.priority,
            "firstReceivedAt": message.first_received_at,
            **message.labels,
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
            return {"receipt": receipt, "ok": True, "leaseUntil": NOW_MS + members.get("leaseMs", 300_000)}
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
        "priority": message.priority,
        "receivedAt": NOW_MS,
        "processAfter": NOW_MS,
        "updatedAt": NOW_MS,
        "expiresAfter": NOW_MS + 86_400_000,
        "processingStartedAt": None,
        "leaseUntil": None,
        "failureReason": None,
        "sourceQueue": None,
        "lastError": message.last_error,
        "attributes": message.options.get("attributes"),
        "group": message.options.get("group"),
        "firstReceivedAt": message.first_received_at,
        "maxAttempts": message.options.get("maxAttempts"),
        "ttlMs": message.options.get("ttlMs"),
        "deadLetterQueue": message.options.get("deadLetterQueue"),
        "deadLetteredAt": None,
        "sourceAttempts": None,
        "failures": [],
        "bytes": len(message.content.encode()),
    }


def ok(members: dict[str, Any]) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps(members).encode()


def error(status: int, code: str, **more: str) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps({"code": code, **more}).encode()


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

        do_POST = do_PUT = do_DELETE = do_GET

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
