"""Examples of operations on workers."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID

WORKER = "0193a1b2-0000-4000-8000-0000000000c1"
WORKER_STATE = {
    "name": "mailer-4f2a",
    "host": "web-1",
    "version": "1.4.0",
    "process": 4711,
    "startedAt": 1769828400000,
    "queues": [
        {
            "queue": "emails",
            "slots": 10,
            "busy": 1,
            "handled": 1802,
            "failed": 3,
            "holds": [
                {
                    "messageId": ID,
                    "sequence": 1806,
                    "since": 1769832000000,
                    "attempt": 1,
                    "leaseUntil": 1769832060000,
                    "progress": {"percent": 40, "text": "resized"},
                }
            ],
        }
    ],
}

BODIES: dict[str, Any] = {
    "reportWorker": WORKER_STATE,
    "listWithdrawn": {"queues": ["emails"], "after": 1769831999999, "waitMs": 5000},
}

ANSWERS: dict[str, Any] = {
    "listWithdrawn": {
        "messages": [
            {"queue": "emails", "messageId": ID, "how": "cancelled", "reason": "the order was called off"}
        ],
        "position": 1769832003000,
    },
    "listWorkers": {
        "workers": [
            {
                "report": {"id": WORKER, **WORKER_STATE},
                "heardAt": 1769832001000,
                "handledPerMinute": 120,
                "silent": False,
                "allBusySince": None,
                "madeBy": "mailer",
                "queuePerMinute": {"emails": 120},
                "queueBusySince": {},
            }
        ]
    },
}
