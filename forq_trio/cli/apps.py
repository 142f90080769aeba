"""`forq apps …`: the apps that published, and the last versions that are remembered of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import ServerName
from forq_trio.cli.options import json_option, url_option
from forq_trio.cli.output import ago, echo
from forq_trio.cli.tables import CellKind, Column, print_list

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient
    from forq_trio.model.publishing.types import PublishedVersion

_SHOWN_QUEUES_MAX = 3
_APP = ServerName(lambda client, _: (each.app for each in _all(client)))
_COLUMNS = (
    Column("app", CellKind.NAME),
    Column("version", CellKind.NUMBER),
    Column("queues", CellKind.TEXT, spare=3),
    Column("made by", spare=1),
    Column("published", CellKind.NUMBER, spare=2),
)


@click.group(cls=CommandGroup)
def apps() -> None:
    """Commands on apps, which publish each version once.

    \f
    The server remembers their last versions ([api.md](docs/api.md)).
    """


@apps.command("list", short_help="List apps.")
@json_option
@url_option
def list_(as_json: bool, url: str) -> None:
    """List the apps that are remembered, in the order of their last publications.

    \f
    A token for some queues sees those that write no others.
    """
    with connect(url) as client:
        found = list(_all(client))
    print_list(found, as_json, _COLUMNS, _row, "No app has published.")


def _all(client: "ForqClient") -> Iterator["PublishedVersion"]:
    after: int | None = 0
    while after is not None:
        page = client.apps(after=after)
        yield from page.apps
        after = page.next


def _row(app: "PublishedVersion") -> tuple[object, ...]:
    queues = ", ".join(app.queues[:_SHOWN_QUEUES_MAX])
    more = len(app.queues) - _SHOWN_QUEUES_MAX
    return (
        app.app,
        app.version,
        f"{queues} and {more} more" if more > 0 else queues,
        app.made_by or "the secret",
        f"{ago(app.published_at)} ago",
    )


@apps.command(short_help="Delete apps.")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=_APP)
@url_option
def delete(names: tuple[str, ...], url: str) -> None:
    """Forget what apps published. If a version is published again afterwards, its messages are sent again.

    It stops at the first unknown name.
    """
    with connect(url) as client:
        for name in names:
            client.delete_app(name)
            echo(f"{name} is forgotten")
