"""Jobs that only make one call at an interval: the sweeps of contract F13 at Forq's intervals, and others.

The due timer handles expiry, delays and leases on time, and a message that fails is moved in the transaction in which
it fails, so these sweeps normally find nothing. If so many messages fail at once that a batch leaves some, the writer
nudges the two sweeps for failed messages.
"""

from collections.abc import Mapping
from functools import partial

from forq_trio.broker.broker import Broker
from forq_trio.broker.leases import Leases
from forq_trio.jobs.periodic import Periodic
from forq_trio.jobs.runs import counted
from forq_trio.model import commands, limits
from forq_trio.model.commands import SweepKind
from forq_trio.writer_actor import WriterActor

_MINUTE = 60.0
OPTIMIZE_INTERVAL_SECONDS = 60 * _MINUTE
INTERVAL_SECONDS = {
    SweepKind.EXPIRED: 5 * _MINUTE,
    SweepKind.EXPIRED_DLQ: 62 * _MINUTE,
    SweepKind.FAILED: 6 * _MINUTE,
    SweepKind.FAILED_DLQ: 89 * _MINUTE,
    SweepKind.STALE: 3 * _MINUTE,
}
NUDGED_KINDS = (SweepKind.FAILED, SweepKind.FAILED_DLQ)
TITLES = {
    SweepKind.EXPIRED: "Expire messages",
    SweepKind.EXPIRED_DLQ: "Delete old dead letters",
    SweepKind.FAILED: "Move failed messages",
    SweepKind.FAILED_DLQ: "Delete failed dead letters",
    SweepKind.STALE: "End leases",
}
_RESULTS = {
    SweepKind.EXPIRED: ("message moved or deleted", "messages moved or deleted"),
    SweepKind.EXPIRED_DLQ: ("deleted", "deleted"),
    SweepKind.FAILED: ("message moved or deleted", "messages moved or deleted"),
    SweepKind.FAILED_DLQ: ("deleted", "deleted"),
    SweepKind.STALE: ("lease ended", "leases ended"),
}


def intervals(*, failed_seconds_max: float, expired_seconds_max: float) -> dict[SweepKind, float]:
    """Forq's intervals in seconds, of which those for failed and expired messages are shortened to these bounds."""
    failed = (SweepKind.FAILED, SweepKind.FAILED_DLQ)
    return {
        kind: min(seconds, failed_seconds_max if kind in failed else expired_seconds_max)
        for kind, seconds in INTERVAL_SECONDS.items()
        if kind is not SweepKind.STALE
    } | {SweepKind.STALE: INTERVAL_SECONDS[SweepKind.STALE]}


def cleanup_jobs(
    writer: WriterActor, interval_seconds: Mapping[SweepKind, float] = INTERVAL_SECONDS
) -> dict[SweepKind, Periodic]:
    """One job per sweep. Nudged ones run at the start, too: a crash may have left failed messages."""
    return {
        kind: Periodic(
            f"sweep.{kind.value}",
            seconds,
            partial(sweep_all, writer, kind),
            title=TITLES[kind],
            nudged=kind in NUDGED_KINDS,
        )
        for kind, seconds in interval_seconds.items()
    }


async def sweep_all(writer: WriterActor, kind: SweepKind) -> str:
    """Sweep until nothing is left, and say what was found. Each step is a commit, and other calls run between steps."""
    count, more = 0, True
    while more:
        swept = await writer.execute(commands.Sweep(kind))
        count, more = count + swept.count, swept.more
    return counted(count, *_RESULTS[kind])


def optimize_job(writer: WriterActor) -> Periodic:
    """Refreshes the database's statistics once an hour (F13), on the write connection."""

    async def optimize() -> str:
        await writer.execute(commands.Optimize())
        return "up to date"

    return Periodic("optimize", OPTIMIZE_INTERVAL_SECONDS, optimize, title="Refresh statistics")


def stages_job(writer: WriterActor) -> Periodic:
    """Ends stages that were not published within a day of their last page; the writer then removes them bit by bit.

    Without such stages it sends the writer no command.
    """

    async def end() -> str:
        ended = step = await writer.execute(commands.EndStages()) if writer.snapshot().staging.stages else 0
        while step == limits.STAGES_ENDED_MAX:
            step = await writer.execute(commands.EndStages())
            ended += step
        return counted(ended, "stage", "stages")

    return Periodic("stages", limits.STAGES_LOOK_SECONDS, end, title="End stages that were not published")


def consumers_job(leases: Leases) -> Periodic:
    """Ends the leases of idle consumers, drops their pages, and finishes interrupted calls.

    Without such consumers it writes nothing.
    """

    async def settle() -> str:
        return counted(await leases.settle_unused(), "lease ended", "leases ended")

    return Periodic("consumers", limits.CONSUMER_JOB_SECONDS, settle, title="End leases of unused consumers")


def uses_job(broker: Broker) -> Periodic:
    """Stores when access tokens and sessions were last used, so that requests need not write it.

    Without a use since the last time it writes nothing.
    """

    async def save() -> str:
        return counted(await broker.keys.uses.save() + await broker.sessions.uses.save(), "use", "uses")

    return Periodic("uses", limits.TOKEN_USE_SAVE_SECONDS, save, title="Save uses of tokens and sessions")
