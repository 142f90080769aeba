"""How much of each bound is used by all keys together, and by the key that uses most."""

from collections import Counter
from collections.abc import Iterator

from forq_trio.broker.redrives import Redrives
from forq_trio.model import limits
from forq_trio.model.quotas import Quota
from forq_trio.storage.engine import Snapshot
from forq_trio.telemetry.families import Family, by_label, gauge
from forq_trio.writer_actor import WriterActor


def quota_families(writer: WriterActor, redrives: Redrives) -> Iterator[Family]:
    """The quotas of which each key has a share."""
    found = quotas(writer.snapshot(), redrives.running_by_key())
    yield gauge(
        "forq_quota_used",
        "How much of a limit all clients together use now.",
        by_label("quota", {each.name: each.used for each in found}),
    )
    yield gauge(
        "forq_quota_limit",
        "The limit: the most that all clients together may use.",
        by_label("quota", {each.name: each.limit for each in found}),
    )
    yield gauge(
        "forq_quota_key_used",
        "How much the client that uses most takes now: an access token, or the secret.",
        by_label("quota", {each.name: each.key_used for each in found}),
    )
    yield gauge(
        "forq_quota_key_limit",
        "The share: the most that one client may use.",
        by_label("quota", {each.name: each.key_limit for each in found}),
    )


def quotas(snapshot: Snapshot, running: Counter[str | None]) -> list[Quota]:
    """The quotas that have shares. running: how many tasks over dead letters run, by who started them."""
    staging = snapshot.staging
    shares = staging.shares.values()
    unfinished = Counter(task.started_by for task in snapshot.redrives.values() if not task.ended)
    return [
        Quota(
            name="queues",
            used=len(snapshot.counts),
            limit=limits.QUEUES_MAX,
            key_used=max(snapshot.queues_made.values(), default=0),
            key_limit=limits.QUEUES_A_TOKEN_MAX,
        ),
        *_of_consumers(snapshot),
        Quota(
            name="stages",
            used=staging.stages,
            limit=limits.STAGES_MAX,
            key_used=max((share.stages for share in shares), default=0),
            key_limit=limits.STAGES_A_KEY_MAX,
        ),
        Quota(
            name="staged_bytes",
            used=staging.bytes,
            limit=limits.STAGED_BYTES_MAX,
            key_used=max((share.bytes for share in shares), default=0),
            key_limit=limits.STAGED_BYTES_A_KEY_MAX,
        ),
        Quota(
            name="apps",
            used=staging.apps,
            limit=limits.APPS_MAX,
            key_used=max((share.apps for share in shares), default=0),
            key_limit=limits.APPS_A_KEY_MAX,
        ),
        Quota(
            name="schedules",
            used=snapshot.schedules.count,
            limit=limits.SCHEDULES_MAX,
            key_used=max(snapshot.schedules.made.values(), default=0),
            key_limit=limits.SCHEDULES_A_TOKEN_MAX,
        ),
        Quota(
            name="redrives_running",
            used=running.total(),
            limit=limits.REDRIVES_RUNNING_MAX,
            key_used=max(running.values(), default=0),
            key_limit=limits.REDRIVES_RUNNING_A_KEY_MAX,
        ),
        Quota(
            name="redrives",
            used=unfinished.total(),
            limit=limits.REDRIVES_REMEMBERED_MAX,
            key_used=max(unfinished.values(), default=0),
            key_limit=limits.REDRIVES_A_KEY_MAX,
        ),
    ]


def _of_consumers(snapshot: Snapshot) -> list[Quota]:
    made: Counter[str] = Counter()
    pages_bytes: Counter[str] = Counter()
    for consumer in snapshot.consumers.values():
        made[consumer.made_by] += 1
        pages_bytes[consumer.made_by] += consumer.stored_bytes
    return [
        Quota(
            name="consumers",
            used=made.total(),
            limit=limits.CONSUMERS_MAX,
            key_used=max(made.values(), default=0),
            key_limit=limits.CONSUMERS_A_KEY_MAX,
        ),
        Quota(
            name="leased_bytes",
            used=pages_bytes.total(),
            limit=limits.CONSUMER_PAGES_BYTES_MAX,
            key_used=max(pages_bytes.values(), default=0),
            key_limit=limits.CONSUMER_PAGES_BYTES_A_KEY_MAX,
        ),
    ]
