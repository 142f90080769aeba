"""Examples of operations on queues."""

from typing import Any

QUEUE = {
    "queue": "orders",
    "isDlq": False,
    "ready": 3,
    "delayed": 1,
    "processing": 2,
    "failed": 0,
    "held": 0,
    "bytes": 51200,
    "waiting": 5,
    "paused": False,
    "oldestReadyAgeMs": 1200,
    "level": "fine",
    "verdict": "Healthy",
    "sendsRefused": None,
    "table": None,
}
SETTINGS = {
    "settings": {"ttlMs": 3600000, "order": "lifo"},
    "effective": {
        "leaseMs": 300000,
        "delayMs": 0,
        "ttlMs": 3600000,
        "maxAttempts": 5,
        "backOff": [1000, 5000, 15000, 30000, 60000],
        "deadLetterQueue": "orders-dlq",
        "expiry": "dead_letter",
        "deduplicationWindowMs": 300000,
        "maxMessages": None,
        "maxBytes": None,
        "overflow": "reject",
        "order": "lifo",
        "groupInFlightMax": None,
        "groupOrder": "fair",
        "inFlightMax": None,
        "rate": None,
        "paused": False,
    },
}
TABLE = {"layout": "pgq", "table": "Orders/1"}

BODIES: dict[str, Any] = {
    "changeSettings": {"maxAttempts": 10, "backOff": {"initialMs": 500, "jitter": 0.5}, "ttlMs": None},
    "bindQueue": TABLE,
}

ANSWERS: dict[str, Any] = {
    "listQueues": {"queues": [{**QUEUE, "oldestReadyAgeMs": None}], "next": None},
    "showQueue": QUEUE,
    "showHealth": {
        "level": "attention",
        "verdict": "Acks slower than the lease",
        "explanation": "In the last 5 min 41 leases of 5 min ended before the ack. "
        "Their messages were delivered again, so work may be done twice.",
        "remedy": "set_lease",
        "remedyValue": 600000,
        "since": 1767225600000,
        "sendsRefused": None,
    },
    "listSettings": {"queues": [{**SETTINGS, "queue": "orders"}], "next": None},
    "showSettings": SETTINGS,
    "changeSettings": SETTINGS,
    "bindQueue": TABLE,
    "showTable": TABLE,
    "purgeQueue": {"purged": 42},
}
