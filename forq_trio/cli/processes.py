"""`forq processes`: the servers on the database."""

from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import ago, echo, visible
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model import durations

if TYPE_CHECKING:
    from forq_trio.model.server.processes import ProcessInfo

_COLUMNS = (
    Column("name", CellKind.NAME),
    Column("pid", CellKind.NUMBER, spare=8),
    Column("address", spare=2),
    Column("version", spare=1),
    Column("waiting", CellKind.NUMBER, spare=7),
    Column("connections", CellKind.NUMBER, spare=6),
    Column("gate", CellKind.NUMBER, spare=4),
    Column("lag", CellKind.NUMBER, spare=3),
    Column("up", CellKind.NUMBER, spare=5),
    Column("heard"),
)


@click.command()
@json_option
@url_option
def processes(as_json: bool, url: str) -> None:
    """List the servers on the database, silent ones first.

    It shows where they are, how many consumers wait at each, and how far each lags behind the others. A server is
    silent if nothing was heard from it for 15 seconds. The one that answers is marked with *.

    \f
    `connections` are those of its API, `gate` is how long its batches wait for their turn, and `lag` how far it is
    behind the others (both the 99th percentile of five minutes), `up` for how long it runs, and `heard` when it was
    heard last. `--json` prints what the [API](docs/api.md) answers of each.
    """
    with connect(url) as client:
        found = client.processes()
    found.sort(key=lambda info: (not info.silent, info.name, info.process))
    print_list(found, as_json, _COLUMNS, _row, "")
    others = [info.name for info in found if info.other_secret and not info.silent]
    if others and not as_json:
        echo(
            f"Another FORQ_AUTH_SECRET than at the server that answers: {visible(', '.join(others))}.",
            err=True,
        )


def _row(info: "ProcessInfo") -> tuple[object, ...]:
    heard = ago(info.heard_at)
    return (
        info.name + ("*" if info.here else ""),
        info.process,
        info.address or "local",
        info.version,
        info.waiting,
        "" if info.connections is None else info.connections,
        _in_words(info.gate_wait_ms),
        _in_words(info.lag_ms),
        ago(info.started_at),
        f"silent for {heard}" if info.silent else f"{heard} ago",
    )


def _in_words(wait_ms: float | None) -> str:
    return "" if wait_ms is None else durations.about(round(wait_ms))
