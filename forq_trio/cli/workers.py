"""`forq workers`: the workers that made themselves known."""

from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import ago
from forq_trio.cli.tables import CellKind, Column, print_list

if TYPE_CHECKING:
    from forq_trio.model.workers.types import WorkerInfo

_COLUMNS = (
    Column("name", CellKind.NAME),
    Column("host", spare=2),
    Column("version", spare=1),
    Column("queues", CellKind.TEXT),
    Column("busy", CellKind.NUMBER, spare=6),
    Column("slots", CellKind.NUMBER, spare=5),
    Column("a minute", CellKind.NUMBER, spare=4),
    Column("oldest", CellKind.NUMBER, spare=3),
    Column("heard"),
)


@click.command()
@click.argument("queue", required=False, type=QUEUE)
@json_option
@url_option
def workers(queue: str | None, as_json: bool, url: str) -> None:
    """List the workers that serve a queue, or all: their slots, and what they handled in the last minute.

    A worker is silent if nothing was heard from it for 15 seconds.

    \f
    It shows how many of their `slots` are `busy`, how long they have held their `oldest` message, and when they were
    `heard`, silent workers first. `--json` prints what the [API](docs/api.md) answers of each.
    """
    with connect(url) as client:
        found = client.workers(queue)
    found.sort(key=lambda info: (not info.silent, info.report.name))
    nothing = "No worker has made itself known; those of forq_trio.worker and `forq work` do."
    print_list(found, as_json, _COLUMNS, _row, nothing)


def _row(info: "WorkerInfo") -> tuple[object, ...]:
    report = info.report
    oldest = min((held.since for part in report.queues for held in part.holds), default=None)
    heard = ago(info.heard_at)
    return (
        report.name,
        report.host,
        report.version,
        " ".join(part.queue for part in report.queues),
        sum(part.busy for part in report.queues),
        sum(part.slots for part in report.queues),
        info.handled_per_minute,
        "" if oldest is None else ago(oldest),
        f"silent for {heard}" if info.silent else f"{heard} ago",
    )
