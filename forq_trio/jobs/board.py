"""All jobs for the admin UI: the last run of each, the next one, and running it now."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import trio

from forq_trio.jobs.runs import NOTHING_TO_DO, JobReport, Runs, counted
from forq_trio.model.clock import Clock
from forq_trio.model.errors import NotFound
from forq_trio.model.redrives import RedriveTask


class JobNotFound(NotFound):
    """There is no such job, or it cannot be run at will"""


RunNow = Callable[[], Awaitable[None]]


class JobBoard:
    """Reads what the jobs noted of their runs; costs nothing until it is asked.

    jobs: the runs of each job, and what has it run now, None where nothing can. redrives: the tasks that are
    remembered.
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


def redrives_report(tasks: Sequence[RedriveTask]) -> JobReport:
    """The report on redrives: of running ones, else of the one that ended last. tasks: the latest first."""
    name, title, when = "redrives", "Redrive dead letters", "when somebody starts one"
    running = [task for task in tasks if task.state == "running"]
    if running:
        moved = counted(sum(task.moved for task in running), "message moved", "messages moved")
        said = f"{len(running)} running, {'none moved yet' if moved == NOTHING_TO_DO else moved + ' so far'}"
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
    moved = counted(ended.moved, "message moved", "messages moved")
    said = f"{'none' if moved == NOTHING_TO_DO else moved} from {ended.queue}"
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
