"""Examples of operations on message batches."""

from typing import Any

_BATCH = {
    "id": "import-7",
    "state": "open",
    "outcome": None,
    "madeAt": 1_700_000_000_000,
    "madeBy": None,
    "closedAt": None,
    "endedAt": None,
    "expiresAt": 1_700_604_800_000,
    "outer": None,
    "needs": "ended",
    "left": 0,
    "done": 0,
    "removed": 0,
    "dead": 0,
    "thenQueue": "reports",
    "thenId": None,
    "onDeadQueue": None,
    "onDeadId": None,
    "refused": None,
}
_ENDED = {**_BATCH, "state": "ended", "closedAt": 1_700_000_000_500, "endedAt": 1_700_000_000_500}

BODIES: dict[str, Any] = {
    "openBatch": {"then": {"queue": "reports", "message": {"content": "the import is done"}}},
    "addToBatch": {"messages": [{"queue": "orders", "message": {"content": "first"}}]},
}

ANSWERS: dict[str, Any] = {
    "openBatch": _BATCH,
    "addToBatch": {"results": [{"id": "018bcfe5-6800-7000-8000-000000000042", "sequence": 42}]},
    "closeBatch": {**_ENDED, "outcome": "sent", "thenId": "018bcfe5-69f4-7000-8000-000000000043"},
    "abandonBatch": {**_ENDED, "outcome": "abandoned"},
    "showBatch": {**_BATCH, "left": 3, "done": 1},
    "listBatches": {"batches": [{**_BATCH, "left": 3, "done": 1}], "next": None},
}
