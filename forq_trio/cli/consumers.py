"""`forq consumers …`: the consumers of pipelines, and what they have leased."""

from typing import TYPE_CHECKING

import click

from forq_trio.cli.confirm import confirm
from forq_trio.cli.connection import connect
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE, ServerName
from forq_trio.cli.options import json_option, url_option, yes_option
from forq_trio.cli.output import ago, echo, members, print_json
from forq_trio.cli.tables import CellKind, Column, print_list, print_table
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.model.consumers.bodies import ConsumerInfo

_CONSUMER = ServerName(
    lambda client, context: (each.name for each in client.consumers(context.params["queue"]))
)
_COLUMNS = (
    Column("queue", CellKind.NAME),
    Column("consumer", CellKind.NAME),
    Column("lag", CellKind.NUMBER),
    Column("open", CellKind.NUMBER, spare=4),
    Column("lease", CellKind.NUMBER, spare=3),
    Column("acknowledged", CellKind.NUMBER, spare=1),
    Column("generation", CellKind.NUMBER, spare=2),
    Column("used", CellKind.NUMBER, spare=5),
)


@click.group(cls=CommandGroup)
def consumers() -> None:
    """Commands on the consumers of pipelines, which read a queue in numbered leases.

    \f
    [pipelines.md](docs/pipelines.md) explains them.
    """


@consumers.command("list", short_help="List consumers.")
@click.argument("queue", required=False, type=QUEUE)
@json_option
@url_option
def list_(queue: str | None, as_json: bool, url: str) -> None:
    """List the consumers of a queue, or of all: how far they are, and when they were last used.

    \f
    `lag` is what could be leased, `open` what is leased and not settled, `lease` the number of the newest lease.
    """
    with connect(url) as client:
        found = client.consumers(queue)
    nothing = "There is no consumer; a pipeline makes one when it opens it."
    print_list(found, as_json, _COLUMNS, _row, nothing)


def _row(consumer: "ConsumerInfo") -> tuple[object, ...]:
    return (
        consumer.queue,
        consumer.name,
        consumer.ready,
        consumer.open_messages,
        consumer.leased,
        consumer.acknowledged,
        consumer.generation,
        f"{ago(consumer.used_at)} ago",
    )


@consumers.command(short_help="Show a consumer.")
@click.argument("queue", type=QUEUE)
@click.argument("name", type=_CONSUMER)
@json_option
@url_option
def show(queue: str, name: str, as_json: bool, url: str) -> None:
    """Show how far a consumer is; times in milliseconds since the Unix epoch.

    \f
    The members are those of the [API](docs/api.md).
    """
    with connect(url) as client:
        found = client.consumer(queue, name)
    if as_json:
        print_json(found)
    else:
        rows = [(member, "" if value is None else value) for member, value in members(found).items()]
        print_table((Column("member"), Column("value", CellKind.NAME)), rows)


@consumers.command(short_help="Give back what a consumer has leased.")
@click.argument("queue", type=QUEUE)
@click.argument("name", type=_CONSUMER)
@yes_option
@url_option
def release(queue: str, name: str, yes: bool, url: str) -> None:
    """Give back the messages of a consumer's open lease, without counting the attempt.

    The pipeline can then neither read nor acknowledge that lease: what it has written of it is delivered again.

    Asks first; without a terminal it needs --yes.

    \f
    It is for a pipeline that does not come back.
    """
    with connect(url) as client:
        before = client.consumer(queue, name)
        if not yes:
            _confirm(before, "Give back")
        client.release_consumer(queue, name)
    echo(f"{counted(before.open_messages, 'message')} of {name} given back to {queue}")


@consumers.command(short_help="Forget a consumer.")
@click.argument("queue", type=QUEUE)
@click.argument("name", type=_CONSUMER)
@yes_option
@url_option
def delete(queue: str, name: str, yes: bool, url: str) -> None:
    """Give back what a consumer has leased, and forget it. A new consumer of its name continues the numbers.

    Asks first; without a terminal it needs --yes.
    """
    with connect(url) as client:
        if not yes:
            _confirm(client.consumer(queue, name), "Forget the consumer and give back")
        client.delete_consumer(queue, name)
    echo(f"{name} of {queue} is forgotten")


def _confirm(consumer: "ConsumerInfo", what: str) -> None:
    """Return if somebody says yes; raises CliFailure or UsageError."""
    messages = counted(consumer.open_messages, "message")
    question = f"{what} {messages} of {consumer.name}?"
    confirm(lambda: question, doing="this", otherwise="nothing was changed")
