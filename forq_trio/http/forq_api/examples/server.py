"""Examples of operations on tokens, processes and the server itself."""

from typing import Any

BACKUP = {
    "name": "forq-20260131T030000Z.db",
    "state": "running",
    "startedAt": 1769828400000,
    "startedBy": None,
    "scheduled": False,
    "pagesDone": 0,
    "pagesTotal": 0,
    "logGrewBytes": 0,
    "finishedAt": None,
    "bytes": None,
    "error": None,
}
COMPACTION = {
    "state": "running",
    "automatic": False,
    "startedAt": 1769828400000,
    "startedBy": "ops",
    "givenBackBytes": 1954152448,
    "goalBytes": 4509715660,
    "fileBytes": 5153960755,
    "freeBytes": 2576980377,
    "possible": True,
    "finishedAt": None,
    "error": None,
}

BODIES: dict[str, Any] = {"createToken": {"name": "billing", "scopes": ["consume"], "queues": "orders*"}}

ANSWERS: dict[str, Any] = {
    "listProcesses": {
        "processes": [
            {
                "id": "4711-9f2c51d07a3e8b64",
                "name": "forq-a",
                "process": 4711,
                "version": "1.0.0",
                "startedAt": 1769828400000,
                "lastBatchAt": 1769832001000,
                "connections": 12,
                "waiting": 3,
                "running": ["Expire messages"],
                "gateWaitMs": 0.9,
                "lagMs": 4.7,
                "ran": [
                    {
                        "job": "sweep.expired",
                        "at": 1769831990000,
                        "tookMs": 1.1,
                        "result": "3 messages moved or deleted",
                        "failed": False,
                    }
                ],
                "address": "10.4.0.11",
                "heardAt": 1769832001000,
                "otherSecret": False,
                "silent": False,
                "here": True,
            }
        ]
    },
    "createToken": {"name": "billing", "token": "forq_..."},
    "listTokens": {
        "tokens": [
            {
                "name": "billing",
                "scopes": ["consume"],
                "queues": "orders*",
                "createdAt": 1767225600000,
                "expiresAt": None,
                "lastUsedAt": 1767225660000,
                "expired": False,
            }
        ]
    },
    "startBackup": BACKUP,
    "showBackups": {
        "directory": "/var/lib/forq/backups",
        "keep": 7,
        "latest": None,
        "nextAt": 1769914800000,
        "files": [{"name": "forq-20260131T030000Z.db", "bytes": 3145728, "madeAt": 1769828400000}],
    },
    "showCompaction": COMPACTION,
    "startCompaction": COMPACTION,
    "pauseCompaction": {**COMPACTION, "state": "paused"},
    "stopCompaction": {**COMPACTION, "state": "stopped", "finishedAt": 1769828500000},
    "healthcheck": {
        "status": "ok",
        "version": "0.1.0",
        "engine": "sqlite",
        "durability": "full",
        "uptimeSeconds": 4711,
        "sendsRefused": None,
        "replica": None,
        "snapshotHeldSeconds": None,
        "otherSecrets": 0,
    },
}
