"""How much is used of each bound that all keys share, and how much by one key. A part of `Broker`."""

from collections import Counter

from forq_trio.broker.base import BrokerBase
from forq_trio.model import limits
from forq_trio.model.quotas import Quota


class Quotas(BrokerBase):
    """From the cache, without a query."""

    def quotas(self) -> list[Quota]:
        """The quotas that have shares, as of the last commit."""
        snapshot = self._writer.snapshot()
        staging = snapshot.staging
        shares = staging.shares.values()
        consumers = Counter(each.made_by for each in snapshot.consumers.values())
        running = self.redrive_tasks.running_by_key()
        unfinished = Counter(task.started_by for task in snapshot.redrives.values() if not task.ended)
        return [
            Quota(
                "queues",
                len(snapshot.counts),
                limits.QUEUES_MAX,
                max(snapshot.queues_made.values(), default=0),
                limits.QUEUES_A_TOKEN_MAX,
            ),
            Quota(
                "consumers",
                consumers.total(),
                limits.CONSUMERS_MAX,
                _most(consumers),
                limits.CONSUMERS_A_KEY_MAX,
            ),
            Quota(
                *("stages", staging.stages, limits.STAGES_MAX),
                *(max([share.stages for share in shares], default=0), limits.STAGES_A_KEY_MAX),
            ),
            Quota(
                *("staged_bytes", staging.bytes, limits.STAGED_BYTES_MAX),
                *(max([share.bytes for share in shares], default=0), limits.STAGED_BYTES_A_KEY_MAX),
            ),
            Quota(
                *("apps", staging.apps, limits.APPS_MAX),
                *(max([share.apps for share in shares], default=0), limits.APPS_A_KEY_MAX),
            ),
            Quota(
                *("redrives_running", running.total(), limits.REDRIVES_RUNNING_MAX),
                *(_most(running), limits.REDRIVES_RUNNING_A_KEY_MAX),
            ),
            Quota(
                *("redrives", unfinished.total(), limits.REDRIVES_REMEMBERED_MAX),
                *(_most(unfinished), limits.REDRIVES_A_KEY_MAX),
            ),
        ]


def _most(used: Counter[str] | Counter[str | None]) -> int:
    return max(used.values(), default=0)
