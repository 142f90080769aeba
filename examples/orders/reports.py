"""The reports of the shop: a router, which workers.py includes."""

from contextlib import closing

from database import database, once
from msgspec import Struct

from forq_trio.worker import Job, Router

reports = Router()


class Report(Struct):
    """Asks for the totals of what was shipped."""

    title: str


class Total(Struct):
    """The result of a report."""

    orders: int
    amount: int


@reports.on("totals", keep_result="1h")
def report(wanted: Report, job: Job) -> Total:
    """Sum up what was shipped. A schedule sends its message each night, and the shop when somebody asks."""
    with closing(database()) as connection:
        orders, amount = connection.execute(
            "SELECT count(*), coalesce(sum(amount), 0) FROM done WHERE step = 'shipped'"
        ).fetchone()
    job.progress_blocking(50, f"{orders} orders are read")
    once(job.id, "report", wanted.title, amount)
    return Total(orders, amount)


class Import(Struct):
    """Orders of another shop that were sent together."""

    orders: int


@reports.on("imports")
def imported(done: Import, job: Job) -> None:
    """Write that each order of an import is paid, or cannot be. Its message is sent when the last of them is done."""
    once(job.id, "imported", f"{done.orders} orders", 0)
