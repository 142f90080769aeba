"""Examples of operations on dead letters."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID, MESSAGE, SENT
from forq_trio.model.errors import MessageNotFound

REDRIVE = "5f0c2b1e9d3a4c68"
DEAD = {
    **MESSAGE,
    "queue": "orders-dlq",
    "status": "ready",
    "attempts": 0,
    "processingStartedAt": None,
    "leaseUntil": None,
    "failureReason": "max_attempts_reached",
    "sourceQueue": "orders",
    "deadLetteredAt": 1767225606000,
    "sourceAttempts": 2,
    "failures": [
        {"attempt": 1, "at": 1767225601000, "reason": "no stock"},
        {"attempt": 2, "at": 1767225606000, "reason": "no stock"},
    ],
}
CHANGED_REDRIVE = {
    "id": REDRIVE,
    "queue": "orders-dlq",
    "action": "redrive",
    "state": "running",
    "dryRun": False,
    "target": None,
    "ratePerSecond": 50,
    "total": 52310,
    "startedAt": 1767225600000,
    "startedBy": "ann",
    "pausedAt": None,
    "finishedAt": None,
}
REDRIVE_INFO = {
    **CHANGED_REDRIVE,
    "filter": {
        "reason": None,
        "since": 1767222000000,
        "until": None,
        "attributes": {},
        "text": "sofa",
        "error": None,
        "aboveSequence": None,
        "errorLike": None,
    },
    "searched": 120,
    "matched": 50,
    "skipped": 0,
    "moved": 50,
    "error": None,
}
MOVED = {
    "results": [
        {"id": ID, "ok": True},
        {
            "id": "0199164b-4dea-78d9-9b4c-c699d5037963",
            "ok": False,
            "code": MessageNotFound.code,
            "message": "it is not there, or is in process",
        },
    ]
}

BODIES: dict[str, Any] = {
    "redriveDeadLetters": {"ids": [ID], "target": "repair"},
    "deleteDeadLetters": {"ids": [ID]},
    "resubmitDeadLetter": {"content": "two sofas", "attributes": {"tenant": "acme"}, "remove": True},
    "startRedrive": {"filter": {"maxAgeMs": 3600000, "text": "sofa"}, "ratePerSecond": 50},
}

ANSWERS: dict[str, Any] = {
    "searchDeadLetters": {"messages": [DEAD], "searched": 10000, "total": 52310, "nextBefore": 38110},
    "showDeadLetter": DEAD,
    "redriveDeadLetters": MOVED,
    "deleteDeadLetters": MOVED,
    "resubmitDeadLetter": {**SENT, "sequence": 43},
    "startRedrive": CHANGED_REDRIVE,
    "listRedrives": {"redrives": [REDRIVE_INFO]},
    "showRedrive": REDRIVE_INFO,
    "pauseRedrive": {**CHANGED_REDRIVE, "state": "paused", "pausedAt": 1767225660000},
    "resumeRedrive": CHANGED_REDRIVE,
    "cancelRedrive": {**CHANGED_REDRIVE, "state": "cancelled", "finishedAt": 1767225660000},
}
