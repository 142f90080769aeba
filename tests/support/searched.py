"""Words that people search for in the documents, and the page to which each leads."""

SEARCHED = {
    "cron": "docs/schedules",
    "dead letter": "docs/dead-letters",
    "delayed job": "docs/delayed",
    "exactly once": "docs/workers",
    "fan out": "docs/outbox",
    "idempotency": "docs/workers",
    "ordering": "docs/queues",
    "poison message": "docs/dead-letters",
    "priority queue": "docs/queues",
    "rate limit": "docs/rates",
    "visibility timeout": "docs/workers",
    "webhook": "docs/webhooks",
}
