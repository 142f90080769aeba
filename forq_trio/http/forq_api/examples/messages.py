"""Examples of operations on messages."""

from typing import Any

from forq_trio.model.errors import InvalidRequest, MessageNotFound

ID = "0199164b-4dea-78d9-9b4c-c699d5037962"
RECEIPT = "00000000-002a-8000-9c1f-5d1c7a60be21"
OTHER_RECEIPT = "00000000-002b-8000-8f3a-27b90d44c10e"
NOT_THERE = "no such message, or the receipt is no longer its current one"
SENT = {"id": ID, "sequence": 42}
MESSAGE: dict[str, Any] = {
    "id": ID,
    "queue": "orders",
    "sequence": 42,
    "status": "processing",
    "content": "one sofa",
    "attempts": 1,
    "priority": 100,
    "receivedAt": 1767225600000,
    "processAfter": 1767225600000,
    "updatedAt": 1767225601000,
    "expiresAfter": 1767312000000,
    "processingStartedAt": 1767225601000,
    "leaseUntil": 1767225901000,
    "failureReason": None,
    "sourceQueue": None,
    "lastError": "no stock",
    "attributes": {"colour": "red"},
    "group": "customer-7",
    "firstReceivedAt": 1767225600000,
    "maxAttempts": None,
    "ttlMs": None,
    "deadLetterQueue": None,
    "deadLetteredAt": None,
    "sourceAttempts": None,
    "failures": [{"attempt": 1, "at": 1767225600500, "reason": "no stock"}],
    "bytes": 27,
    "keyed": None,
}
RECEIVED = {
    "id": ID,
    "content": "one sofa",
    "attempts": 1,
    "sequence": 42,
    "receivedAt": 1767225600000,
    "priority": 100,
    "firstReceivedAt": 1767225600000,
    "attributes": {"colour": "red"},
    "group": "customer-7",
    "receipt": RECEIPT,
    "leaseUntil": 1767225900000,
}
SETTLED = {
    "results": [
        {"receipt": RECEIPT, "ok": True},
        {"receipt": OTHER_RECEIPT, "ok": False, "code": MessageNotFound.code, "message": NOT_THERE},
    ]
}
READY = {
    **MESSAGE,
    "status": "ready",
    "attempts": 0,
    "processingStartedAt": None,
    "leaseUntil": None,
    "lastError": None,
    "firstReceivedAt": None,
    "failures": [],
}

BODIES: dict[str, Any] = {
    "sendMessage": {"content": "one sofa", "delayMs": 5000},
    "sendMessages": {"messages": [{"content": "a"}, {"content": "b", "priority": 500}]},
    "receiveMessages": {"max": 10, "waitMs": 20000, "leaseMs": 60000},
    "cancelRunningMessage": {"reason": "the order was called off"},
    "ackMessages": {"receipts": [RECEIPT, OTHER_RECEIPT]},
    "nackMessages": {"receipts": [RECEIPT], "delayMs": 5000, "reason": "no stock"},
    "discardMessages": {"receipts": [RECEIPT], "reason": "the order was withdrawn"},
    "extendLeases": {"receipts": [RECEIPT], "leaseMs": 60000},
    "releaseMessages": {"receipts": [RECEIPT], "delayMs": 0},
}

ANSWERS: dict[str, Any] = {
    "receiveMessage": {"id": ID, "content": "one sofa", "receipt": RECEIPT},
    "sendMessages": {
        "results": [
            SENT,
            {"code": InvalidRequest.code, "field": "$.content", "message": "content is missing"},
        ]
    },
    "receiveMessages": {"messages": [RECEIVED]},
    "ackMessages": SETTLED,
    "nackMessages": SETTLED,
    "discardMessages": SETTLED,
    "extendLeases": {"results": [{"receipt": RECEIPT, "ok": True, "leaseUntil": 1767225960000}]},
    "releaseMessages": SETTLED,
    "showMessage": MESSAGE,
    "peekMessages": {"messages": [READY]},
}
