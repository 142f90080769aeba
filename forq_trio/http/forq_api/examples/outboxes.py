"""Examples of operations on outboxes."""

from typing import Any

from forq_trio.model.errors import TooManyQueues

BODIES: dict[str, Any] = {
    "relayOutbox": {"after": 0, "messages": [{"id": 1, "queue": "orders", "message": {"content": "first"}}]},
    "retrySetAside": {"ids": [7]},
    "deleteSetAside": {"ids": [7]},
}

ANSWERS: dict[str, Any] = {
    "relayOutbox": {"position": 1},
    "showOutbox": {"position": 1},
    "listSetAside": {
        "messages": [
            {
                "id": 7,
                "queue": "orders",
                "message": {"content": "order 1"},
                "code": TooManyQueues.code,
                "reason": "the token has made as many queues as one may",
            }
        ]
    },
    "retrySetAside": {"count": 1},
    "deleteSetAside": {"count": 1},
}
