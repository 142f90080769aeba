"""The reports of the shop: a router, which workers.py includes."""

from contextlib import closing

from database import database, once
from msgspec import Struct

from forq_trio.worker import Job, Router

reports = Router()


class Report(Struct):
    """Asks for the totals of what was shipped."""

    title: str


@reports.on("nightly")
def report(wanted: Report, job: Job) -> None:
    """Sum up what was shipped. A schedule sends its message each night."""
    with closing(database()) as connection:
        (total,) = connection.execute(
            "SELECT coalesce(sum(amount), 0) FROM done WHERE step = 'shipped'"
        ).fetchone()
    once(job.id, "report", wanted.title, total)
