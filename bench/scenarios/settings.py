"""How much each scenario does: the standard set, a quick look, and the least that still exercises everything."""

from dataclasses import dataclass

from forq_trio.model.limits import MINUTE_MS


@dataclass(frozen=True)
class Settings:
    """Sizes of all scenarios. Every measurement ends after `seconds` or `answers_max` answers, whichever is first."""

    name: str = "standard"
    seconds: float = 4.0
    warm_up_seconds: float = 1.0
    answers_max: int = 5_000_000
    rounds: int = 5
    connections: tuple[int, ...] = (1, 10, 32, 128)
    body_bytes: int = 200

    batch_messages: int = 100
    batch_connections: tuple[int, ...] = (1, 8)

    paced_rates: tuple[int, ...] = (1_000, 5_000)
    paced_connections: int = 128
    producer_rate: int = 100
    handoff_seconds: float = 10.0

    dashboards: int = 500
    dashboard_queues: int = 100

    idle_connections: int = 1_000
    idle_settle_seconds: float = 2.0
    idle_seconds: float = 10.0
    idle_wakes: int = 50

    alone_seconds: float = 2.0  # how long nothing is beside what is measured, for comparison
    walk_ms: int = 5_000  # how long receives look for what is not there
    backlog_ready: int = 1_000_000
    schedules: int = 100_000
    schedules_spread_ms: int = MINUTE_MS
    backlog_delayed: int = 1_000_000
    backlog_in_flight: int = 100_000
    backlog_samples: int = 1_000
    backlog_page_samples: int = 30
    restart_messages: int = 20_000
    tail_messages: int = 300_000

    embedded_tasks: int = 256
    embedded_batch_tasks: int = 8
    embedded_messages: int = 100_000
    embedded_seconds: float = 4.0

    pipeline_messages: int = 200_000
    pipeline_bytes: tuple[int, ...] = (100, 1_024)
    spark_messages: int = 400_000
    feature_messages: int = 10_000
    writes_stored: int = 20_000
    writes_commits: int = 500
    peer_messages: int = 10_000
    peer_seconds: float = 4.0
    start_seconds: float = 3.0  # for processes to start, before they are measured together
    checkout_cycles: int = 3_000
    fsync_probes: int = 200


STANDARD = Settings()

QUICK = Settings(
    name="quick",
    seconds=0.4,
    warm_up_seconds=0.2,
    rounds=2,
    connections=(1, 32),
    paced_rates=(1_000,),
    handoff_seconds=1.0,
    dashboards=500,
    idle_connections=500,
    idle_settle_seconds=0.5,
    idle_seconds=1.0,
    idle_wakes=20,
    backlog_ready=20_000,
    schedules=5_000,
    backlog_delayed=20_000,
    backlog_in_flight=2_000,
    backlog_samples=100,
    backlog_page_samples=10,
    restart_messages=1_000,
    tail_messages=10_000,
    embedded_messages=10_000,
    embedded_seconds=0.4,
    pipeline_messages=20_000,
    spark_messages=100_000,
    feature_messages=1_000,
    writes_stored=2_000,
    writes_commits=100,
    peer_messages=1_000,
    peer_seconds=0.4,
    start_seconds=0.4,
    checkout_cycles=1_000,
)

TINY = Settings(
    name="tiny",
    seconds=2.0,
    warm_up_seconds=0.0,
    answers_max=100,
    rounds=1,
    connections=(2,),
    batch_messages=10,
    batch_connections=(1,),
    paced_rates=(1_000,),
    paced_connections=4,
    handoff_seconds=1.5,
    idle_connections=20,
    idle_settle_seconds=0.2,
    idle_seconds=0.2,
    idle_wakes=3,
    dashboards=3,
    dashboard_queues=3,
    alone_seconds=0.3,
    walk_ms=300,
    backlog_ready=300,
    schedules=50,
    schedules_spread_ms=1_000,
    backlog_delayed=300,
    backlog_in_flight=100,
    restart_messages=100,
    tail_messages=100,
    backlog_samples=10,
    backlog_page_samples=2,
    embedded_tasks=16,
    embedded_batch_tasks=2,
    embedded_messages=200,
    embedded_seconds=2.0,
    pipeline_messages=200,
    pipeline_bytes=(100,),
    spark_messages=500,
    feature_messages=50,
    writes_stored=200,
    writes_commits=10,
    peer_messages=50,
    peer_seconds=2.0,
    start_seconds=0.1,
    checkout_cycles=300,
    fsync_probes=10,
)

PRESETS = {settings.name: settings for settings in (STANDARD, QUICK, TINY)}
