"""All jobs for the admin UI: the last run of each, the next one, and running it now."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import trio
from msgspec.structs import replace

from forq_trio.jobs.runs import JobReport, Runs
from forq_trio.model.clock import Clock
from forq_trio.model.dead_letters.redrives import RedriveTask, done_to
from forq_trio.model.errors import NotFound
from forq_trio.model.server.processes import JobRun, ProcessInfo
from forq_trio.telemetry.words import counted


class JobNotFound(NotFound):
    """There is no such job, or it cannot be run at will"""


REDRIVES = "redrives"
"""The name of the tasks over dead letters: all processes know them, and one process runs each."""
RunNow = Callable[[], Awaitable[None]]


class JobBoard:
    """Reads what the jobs noted about their runs; costs nothing until it is asked.

    jobs: the runs of each job, and the function that has it run now; None if it cannot be run on request. redrives:
    returns the tasks that are remembered.
    """

    def __init__(
        self,
        jobs: Sequence[tuple[Runs, RunNow | None]],
        redrives: Callable[[], Sequence[RedriveTask]],
        clock: Clock,
    ) -> None:
        self._runs = [(runs, run_now is not None) for runs, run_now in jobs]
        self._run_now: Mapping[str, RunNow] = {runs.name: run for runs, run in jobs if run is not None}
        self._redrives = redrives
        self._clock = clock

    def reports(self) -> list[JobReport]:
        """Every job, as of now."""
        reports = [runs.report(self._clock, runnable=runnable) for runs, runnable in self._runs]
        return [*reports, redrives_report(self._redrives())]

    async def run_now(self, name: str) -> JobReport:
        """Have a job run now, and return its report when that run has ended, also if it failed.

        Cancelled, the job runs all the same. Raises JobNotFound (also for one that cannot be run), Stopping; for a
        backup also what `Backups.start` raises.
        """
        run_now = self._run_now.get(name)
        if run_now is None:
            raise JobNotFound
        await trio.lowlevel.checkpoint()
        await run_now()
        return next(report for report in self.reports() if report.name == name)

    def close(self) -> None:
        """Wake callers of `run_now` with Stopping; no run follows. Raises nothing."""
        for runs, _ in self._runs:
            runs.close()


def own_runs(reports: Sequence[JobReport]) -> list[JobRun]:
    """The latest runs that have ended in this process, to tell other processes of."""
    return [
        JobRun(each.name, each.last_run_at, round(each.took_seconds * 1_000, 1), each.result, each.failed)
        for each in reports
        if each.name != REDRIVES and each.last_run_at is not None and each.took_seconds is not None
    ]


def of_all(reports: Sequence[JobReport], processes: Sequence[ProcessInfo]) -> list[JobReport]:
    """The reports of this process, each with the job's latest run in any process, and which process that was."""
    latest: dict[str, tuple[JobRun, ProcessInfo]] = {}
    for each in processes:
        for run in each.ran:
            if run.job not in latest or latest[run.job][0].at < run.at:
                latest[run.job] = run, each
    return [_with_latest(report, processes, latest.get(report.name)) for report in reports]


def _with_latest(
    report: JobReport, processes: Sequence[ProcessInfo], latest: tuple[JobRun, ProcessInfo] | None
) -> JobReport:
    if report.name == REDRIVES:
        return replace(
            report, ran_on=", ".join(_named(each) for each in processes if report.title in each.running)
        )
    if latest is None:
        return report
    run, process = latest
    if process.here:
        return replace(report, ran_on=_named(process))
    return replace(
        report,
        last_run_at=run.at,
        took_seconds=run.took_ms / 1_000,
        result=run.result,
        failed=run.failed,
        ran_on=_named(process),
    )


def _named(process: ProcessInfo) -> str:
    return f"{process.name} {process.process}"


def redrives_report(tasks: Sequence[RedriveTask]) -> JobReport:
    """The report on redrives: on the running ones, else on the one that ended last. tasks: the latest first."""
    name, title, when = REDRIVES, "Redrive dead letters", "when somebody starts one"
    running = [task for task in tasks if task.state == "running"]
    if running:
        said = f"{len(running)} running"
        if not all(task.dry_run for task in running):
            changed = sum(task.moved for task in running)
            done = " or ".join(dict.fromkeys(done_to(task) for task in running if not task.dry_run))
            said += f", {counted(changed, 'message')} {done} so far" if changed else f", none {done} yet"
        if dry := sum(task.dry_run for task in running):
            said += f", {counted(dry, 'dry run')}"
        began_at = max(task.started_at for task in running)
        return JobReport(
            name=name,
            title=title,
            last_run_at=began_at,
            result=said,
            running=True,
            next_when=when,
            runnable=False,
        )
    ended = max(
        (task for task in tasks if task.finished_at is not None),
        key=lambda task: task.finished_at or 0,
        default=None,
    )
    if ended is None or ended.finished_at is None:
        return JobReport(name=name, title=title, next_when=when, runnable=False)
    failed = ended.state == "failed"
    said = f"{_outcome(ended)} from {ended.queue}"
    return JobReport(
        name=name,
        title=title,
        last_run_at=ended.started_at,
        took_seconds=max(0, ended.finished_at - ended.started_at) / 1_000,
        result=f"{said}, then: {ended.error}" if failed else said,
        failed=failed,
        next_when=when,
        runnable=False,
    )


def _outcome(ended: RedriveTask) -> str:
    """How many messages a task moved or deleted, or in a dry run would have."""
    done = done_to(ended)
    if ended.dry_run:
        found = f"{counted(ended.matched, 'message')} would be" if ended.matched else "none would be"
        return f"dry run, nothing was changed: {found} {done}"
    return f"{counted(ended.moved, 'message')} {done}" if ended.moved else f"none {done}"
