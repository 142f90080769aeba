"""Examples of operations on events."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID

EVENT = {
    "id": 7,
    "at": 1763856000000,
    "kind": "acked",
    "queue": "orders",
    "messageId": ID,
    "sequence": 3,
    "attempt": 1,
    "reason": None,
    "target": None,
    "receivedAt": 1763855999000,
    "durationMs": 40,
    "bytes": 512,
}

BODIES: dict[str, Any] = {}

ANSWERS: dict[str, Any] = {
    "listEvents": EVENT,
    "showEventRange": {"enabled": True, "first": 1, "last": 99},
    "listMessageEvents": [EVENT],
}
