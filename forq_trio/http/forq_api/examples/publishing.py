"""Examples of operations on publications and exports."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID

APP = {
    "app": "loader",
    "version": 1,
    "publishedAt": 1767225600000,
    "once": False,
    "madeBy": "etl",
    "queues": ["orders"],
}

BODIES: dict[str, Any] = {
    "stagePage": {"content": "one", "priority": 500},
    "publish": {
        "app": "loader",
        "version": 1,
        "stages": [{"queue": "orders", "stage": "load-1", "pages": 1}],
    },
}

ANSWERS: dict[str, Any] = {
    "stagePage": {"messages": 2, "bytes": 6},
    "publish": {"published": True, "messages": 2},
    "listApps": {"apps": [APP], "next": None},
    "showPublication": APP,
    "exportQueue": {
        "id": ID,
        "queue": "orders",
        "sequence": 7,
        "content": "one",
        "receivedAt": 1767225600000,
        "state": "ready",
    },
    "exportPartitions": {
        "bounds": [{"after": 0, "until": 1000}, {"after": 1000, "until": 1802}],
        "messages": 1731,
    },
}
