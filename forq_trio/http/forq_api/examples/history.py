"""Examples of operations on the history."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID, SENT

FINISHED = {
    "historyId": 7,
    "id": ID,
    "queue": "orders",
    "sequence": 42,
    "outcome": "acked",
    "reason": None,
    "finishedAt": 1767225606000,
    "content": "one sofa",
    "attempts": 1,
    "priority": 100,
    "receivedAt": 1767225600000,
    "firstReceivedAt": 1767225600000,
    "lastError": None,
    "attributes": {"colour": "red"},
    "group": "customer-7",
    "failureReason": None,
    "sourceQueue": None,
    "sourceAttempts": None,
    "deadLetteredAt": None,
    "failures": [],
    "bytes": 27,
    "key": None,
    "kind": None,
    "result": None,
    "keptUntil": None,
}

BODIES: dict[str, Any] = {"requeueFinished": {"ids": [ID]}}

ANSWERS: dict[str, Any] = {
    "readHistory": {
        "id": ID,
        "queue": "orders",
        "sequence": 42,
        "content": "one sofa",
        "receivedAt": 1767225600000,
        "attempts": 1,
        "historyId": 7,
        "outcome": "acked",
        "finishedAt": 1767225606000,
    },
    "showHistoryRange": {"enabled": True, "first": 1, "last": 99},
    "searchHistory": {"messages": [FINISHED], "searched": 10000, "total": 52310, "nextBefore": 38110},
    "showFinishedMessage": FINISHED,
    "requeueFinished": {"results": [SENT]},
    "purgeHistory": {"purged": 12},
}
