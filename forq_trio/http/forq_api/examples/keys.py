"""Examples of operations on keyed messages."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID, READY

OFFERED = {"outcome": "created", "id": ID, "sequence": 43, "processAfter": 1767225605000, "revision": 43}
KEYED = {
    "key": "customer/41",
    "kind": "reindex",
    "revision": 42,
    "mode": "debounce",
    "offers": 1,
    "firstOfferAt": 1767225600000,
    "lastOfferAt": 1767225600000,
    "maxWaitUntil": 1767225660000,
}
OF_KEY = {**READY, "status": "delayed", "processAfter": 1767225605000, "keyed": KEYED}

BODIES: dict[str, Any] = {
    "offerMessage": {"content": "one sofa", "mode": "debounce", "delayMs": 5000, "maxWaitMs": 60000},
    "offerMessages": {"messages": [{"key": "a", "content": "x"}, {"key": "a", "content": "x"}]},
    "rescheduleKey": {"delayMs": 60000},
}

ANSWERS: dict[str, Any] = {
    "offerMessage": OFFERED,
    "offerMessage 200": {**OFFERED, "outcome": "updated"},
    "offerMessages": {"results": [OFFERED, {**OFFERED, "outcome": "ignored"}]},
    "listKeys": {"messages": [OF_KEY], "next": None},
    "showKey": {"message": OF_KEY, "onceMore": None},
    "rescheduleKey": {**OFFERED, "outcome": "updated"},
    "dropKeys": {"dropped": 1042},
}
