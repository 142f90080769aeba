"""Words that people search for in the documents, and the page to which each leads."""

SEARCHED = {
    "cron": "docs/schedules",
    "dead letter": "docs/dead-letters",
    "delayed job": "docs/delayed",
    "exactly once": "docs/worker-deployment",
    "fan out": "docs/outbox",
    "idempotency": "docs/worker-deployment",
    "ordering": "docs/queues",
    "poison message": "docs/dead-letters",
    "priority queue": "docs/queues",
    "rate limit": "docs/rates",
    "visibility timeout": "docs/workers",
    "webhook": "docs/webhooks",
}
