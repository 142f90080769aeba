"""The scenarios by name, in the order in which they run."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.scenarios import (
    backlog,
    checkouts,
    client,
    closed,
    dashboards,
    embedded,
    events,
    features,
    handoff,
    idle,
    keys,
    neighbours,
    peers,
    pipelines,
    postgres,
    postgres_backlog,
    postgres_servers,
    protocols,
    restart,
    schedules,
    servers,
    snapshot,
    spark,
    sqs,
    tail,
    workers,
    writes,
)
from bench.scenarios.context import Context, Row

YARDSTICK = "stores nothing"
BY_PEER = "as each row says"


@dataclass(frozen=True)
class Scenario:
    """A measurement. needs_own: it measures things that cannot be reached through a URL."""

    run: Callable[[Context], list[Row]]
    needs_own: bool = False
    durability: str | None = None

    @property
    def about(self) -> str:
        """What it does, in one line."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


SCENARIOS: dict[str, Scenario] = {
    "ceiling": Scenario(closed.ceiling, needs_own=True, durability=YARDSTICK),
    "produce": Scenario(closed.produce),
    "cycle": Scenario(closed.cycle),
    "ratio": Scenario(closed.ratio),
    "checkouts": Scenario(checkouts.checkouts, needs_own=True),
    "tail": Scenario(tail.tail),
    "paced": Scenario(handoff.paced),
    "1c1p": Scenario(handoff.one_to_one),
    "10c10p": Scenario(handoff.ten_to_ten),
    "40c20p": Scenario(handoff.forty_to_twenty),
    "protocols": Scenario(protocols.protocols),
    "batch": Scenario(closed.batch),
    "client": Scenario(client.client),
    "idle": Scenario(idle.idle),
    "dashboards": Scenario(dashboards.dashboards, needs_own=True),
    "backlog": Scenario(backlog.backlog),
    "restart": Scenario(restart.restart, needs_own=True),
    "embedded": Scenario(embedded.embedded, needs_own=True),
    "features": Scenario(features.features, needs_own=True),
    "features-stored": Scenario(features.features_stored, needs_own=True),
    "keys": Scenario(keys.keys),
    "keys-stored": Scenario(keys.keys_stored, needs_own=True),
    "neighbours": Scenario(neighbours.neighbours, needs_own=True),
    "schedules": Scenario(schedules.schedules, needs_own=True),
    "workers": Scenario(workers.workers, needs_own=True),
    "writes": Scenario(writes.writes, needs_own=True),
    "events": Scenario(events.events, needs_own=True),
    "pipelines": Scenario(pipelines.pipelines, needs_own=True),
    "spark": Scenario(spark.spark, needs_own=True),
    "postgres": Scenario(postgres.postgres, needs_own=True, durability="synchronous_commit=on"),
    "postgres-peers": Scenario(postgres.postgres_peers, needs_own=True, durability=BY_PEER),
    "postgres-servers": Scenario(
        postgres_servers.postgres_servers, needs_own=True, durability="synchronous_commit=on"
    ),
    "postgres-ratio": Scenario(
        postgres_servers.postgres_ratio, needs_own=True, durability="fsync=full, synchronous_commit=on"
    ),
    "postgres-wake-up": Scenario(
        postgres_servers.postgres_wake_up, needs_own=True, durability="synchronous_commit=on"
    ),
    "postgres-backlog": Scenario(
        postgres_backlog.postgres_backlog, needs_own=True, durability="synchronous_commit=on"
    ),
    "postgres-held-snapshot": Scenario(
        snapshot.held_snapshot, needs_own=True, durability="synchronous_commit=on"
    ),
    "servers": Scenario(servers.servers, needs_own=True, durability=BY_PEER),
    "sqs": Scenario(sqs.sqs, needs_own=True, durability=BY_PEER),
    "peers": Scenario(peers.peers, needs_own=True, durability=BY_PEER),
}
