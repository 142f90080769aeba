"""Examples of operations on consumers of pipelines."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID

CONSUMER = {
    "queue": "orders",
    "name": "archive",
    "generation": 3,
    "leased": 8,
    "acknowledged": 7,
    "complete": True,
    "openMessages": 100000,
    "openBytes": 31457280,
    "oldestReadable": 5,
    "ready": 52310,
    "openedAt": 1767225600000,
    "usedAt": 1767225600000,
    "expiresAt": 1767312000000,
    "releasedBefore": 0,
    "settling": False,
    "madeBy": "etl",
    "createdAt": 1767139200000,
    "leases": [{"number": 7, "madeAt": 1767222000000}, {"number": 8, "madeAt": 1767225600000}],
}
CONSUMERS = {"consumers": [CONSUMER], "next": None}

BODIES: dict[str, Any] = {
    "openConsumer": {"idleSeconds": 86400},
    "leaseMessages": {"generation": 3, "number": 9, "acknowledge": 8, "maxMessages": 100000},
    "acknowledgeLease": {"generation": 3, "number": 9, "madeAt": 1767225600000},
}

ANSWERS: dict[str, Any] = {
    "openConsumer": CONSUMER,
    "showConsumer": CONSUMER,
    "listConsumers": CONSUMERS,
    "listAllConsumers": CONSUMERS,
    "leaseMessages": {
        "number": 9,
        "messages": 5000,
        "bytes": 1572864,
        "pages": 50,
        "complete": False,
        "acknowledged": 8,
        "madeAt": 1767225600000,
        "waiting": False,
    },
    "readLease": {
        "id": ID,
        "queue": "orders",
        "sequence": 42,
        "content": "one",
        "receivedAt": 1767225600000,
        "attempts": 1,
    },
    "acknowledgeLease": CONSUMER,
    "releaseConsumer": CONSUMER,
}
