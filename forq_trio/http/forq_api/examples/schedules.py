"""Examples of operations on schedules."""

from typing import Any

from forq_trio.http.forq_api.examples.messages import ID, SENT

TIMING = {
    "cron": "0 8 * * 1-5",
    "every": None,
    "daily": None,
    "timeZone": "Europe/Paris",
    "jitter": None,
    "start": None,
    "end": None,
}
CHANGED_SCHEDULE = {
    **TIMING,
    "name": "daily-report",
    "queue": "reports",
    "missed": "last",
    "whilePending": "send",
    "paused": False,
    "pausedAt": None,
    "pausedBy": None,
    "madeAt": 1763856000000,
    "madeBy": None,
    "updatedAt": 1763856000000,
    "nextRun": 1763967600000,
}
RUN = {
    "nominal": 1763967600000,
    "result": "sent",
    "runs": 1,
    "at": 1763967600004,
    "lateMs": 4,
    "messageId": ID,
    "sequence": 7,
    "reason": None,
}
SCHEDULE = {
    **CHANGED_SCHEDULE,
    "content": "daily",
    "priority": 100,
    "ttlMs": None,
    "attributes": None,
    "group": None,
    "maxAttempts": None,
    "deadLetterQueue": None,
    "lastRun": RUN,
}

BODIES: dict[str, Any] = {
    "saveSchedule": {
        "queue": "reports",
        "content": "daily",
        "cron": "0 8 * * 1-5",
        "timeZone": "Europe/Paris",
    },
    "nextRuns": {"daily": ["02:30"], "timeZone": "Europe/Paris"},
}

ANSWERS: dict[str, Any] = {
    "saveSchedule": CHANGED_SCHEDULE,
    "showSchedule": {
        "schedule": SCHEDULE,
        "nextRuns": [{"at": 1763967600000, "local": "2025-11-24T08:00:00+01:00"}],
        "runs": [RUN],
    },
    "listSchedules": {"schedules": [SCHEDULE], "next": None},
    "pauseSchedule": {**CHANGED_SCHEDULE, "paused": True, "pausedAt": 1763856100000, "nextRun": None},
    "resumeSchedule": CHANGED_SCHEDULE,
    "runSchedule": SENT,
    "nextRuns": {
        "runs": [
            {
                "at": 1774746000000,
                "local": "2026-03-29T03:00:00+02:00",
                "note": "The clocks go forward: 02:30 does not exist on this day, so it runs at 03:00.",
            }
        ]
    },
}
