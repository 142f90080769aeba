"""Examples of operations on results."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID

BODIES: dict[str, Any] = {}

ANSWERS: dict[str, Any] = {
    "showResult": {
        "id": ID,
        "queue": "thumbnails",
        "state": "acked",
        "attempts": 1,
        "result": '{"width":640,"height":480}',
        "lastError": None,
        "endedAt": 1767225606000,
    }
}
