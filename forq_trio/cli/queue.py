"""`forq queue …`: the settings of one queue, and commands on it as a whole."""

from typing import TYPE_CHECKING, Any

import click

from forq_trio.cli.confirm import confirm_deletion
from forq_trio.cli.connection import connect
from forq_trio.cli.declared_options import FORMS, setting_options
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import json_option, url_option, yes_option
from forq_trio.cli.output import echo, members, print_json
from forq_trio.cli.tables import CellKind, Column, print_table
from forq_trio.model.errors import Forbidden, QueueNotFound
from forq_trio.model.queues.settings import OF_TABLES, SETTINGS
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient


@click.group(cls=CommandGroup)
def queue() -> None:
    """Commands on a queue as a whole. A queue needs no setup: its first message creates it, with default settings.

    \f
    All but `forq queue set`, which creates a queue that does not exist and says so, end with code 5 for a name that
    nobody has used. Durations and sizes are printed as the options take them, so what is set for one queue can be
    copied to another.
    """


@queue.command(short_help="Show the settings of a queue.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@json_option
@url_option
def show(queue: str, as_json: bool, url: str) -> None:
    """Show the settings of a queue, and whether each was set or is the default.

    \f
    `source` is `set` for what somebody set, `default` for what holds without that, and the name of a dialect for what
    its clients alone set, such as tags. With `--json` an object with `queue`, `settings` (what was set) and `effective`
    (what holds).
    """
    with connect(url) as client:
        found = client.settings(queue)
    if as_json:
        shown = {"settings": members(found.settings), "effective": members(found.effective)}
        print_json({"queue": queue, **shown})
        return
    rows = []
    for name, setting in SETTINGS.items():
        if found.settings.table is not None and name not in OF_TABLES:
            continue
        source = "default" if getattr(found.settings, name) is None else "set"
        value = FORMS[setting.kind].text(getattr(found.effective, name))
        rows.append((setting.option, value, source))
    details = found.settings.details(queue)
    if details is not None:
        tags = [(f"tag {name}", text) for name, text in details.tags.items()]
        said = [(label.lower(), text) for label, text in details.facts]
        rows += [(label, text, details.dialect) for label, text in (*said, *tags)]
    print_table((Column("setting"), Column("value", CellKind.NAME), Column("source", spare=1)), rows)
    for label, _ in details.documents if details is not None else ():
        echo(f"{queue} has a {label.lower()}, which --json prints.", err=True)
    if found.settings.table is not None:
        echo(f"{queue} is bound to the table {found.settings.table.table}.", err=True)
    if found.effective.paused:
        echo(f"{queue} is paused: `forq queue resume {queue}` goes on.", err=True)


@queue.command("set", short_help="Change settings of a queue.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@setting_options
@click.option(
    "--unset",
    "unset",
    type=click.Choice([setting.option for setting in SETTINGS.values()]),
    multiple=True,
    metavar="SETTING",
    help="Reset this setting to the default; may be repeated.",
)
@url_option
def set_(queue: str, unset: tuple[str, ...], url: str, **values: Any) -> None:
    """Change settings of a queue, at once for all of its messages; the others stay as they are.

    Order, delay and time to live apply to messages that are sent from now on. A queue that does not exist is created.

    \f
    A `SIZE` is a number of bytes, or one with `KiB`, `MiB` or `GiB`. `DELAYS` are the delays after the first, second,
    ... failed attempt, the last one for all further attempts; or a formula: `initial` after the first attempt,
    `factor` times as long after each further one (2 unless it is given), `max` at most (1h), shortened at random by a
    share of up to `jitter` (0). [queues.md](docs/queues.md#settings-of-a-queue) has the range and the default of each
    setting. `SETTING` is the name of an option without its dashes.
    """
    changes = {member: value for member, value in values.items() if value is not None}
    for name, setting in SETTINGS.items():
        if setting.option in unset:
            if name in changes:
                raise click.UsageError(f"--{setting.option} and --unset {setting.option} exclude each other")
            changes[name] = None
    if not changes:
        raise click.UsageError("there is nothing to set; --help lists the settings")
    with connect(url) as client:
        known = _is_known(client, queue)
        client.configure(queue, **changes)
    changed = counted(len(changes), "setting")
    echo(f"{changed} of {queue} changed" if known else f"{queue} is a new queue, with {changed}")


def _is_known(client: "ForqClient", queue: str) -> bool:
    try:
        client.settings(queue)
    except QueueNotFound:
        return False
    except Forbidden:
        pass  # the next request says which scope is missing
    return True


@queue.command(short_help="Reset all settings to the defaults.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@url_option
def reset(queue: str, url: str) -> None:
    """Reset all settings to the defaults. A paused queue stays paused."""
    with connect(url) as client:
        client.reset_settings(queue)
    echo(f"{queue} has the default settings")


@queue.command(short_help="Bind a queue to a table of pgq's layout.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@click.argument("table")
@url_option
def bind(queue: str, table: str, url: str) -> None:
    """Bind a queue to a table of pgq's layout in the server's PostgreSQL database: its messages are the rows there.

    Go's pgq publishes and consumes there at the same time. `forq pgq create` makes such a table.

    \f
    See [a queue bound to a table](docs/bound-queues.md).
    """
    with connect(url) as client:
        client.bind(queue, table)
    echo(f"{queue} is bound to the table {table}")


@queue.command(short_help="End the binding of a queue to a table.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@url_option
def unbind(queue: str, url: str) -> None:
    """End the binding: the queue has messages of its own again. The table stays as it is."""
    with connect(url) as client:
        client.unbind(queue)
    echo(f"{queue} is not bound to a table any more")


@queue.command(short_help="Deliver no more messages.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@url_option
def pause(queue: str, url: str) -> None:
    """Deliver no messages of a queue until `forq queue resume`. Sends go on, and consumers wait."""
    with connect(url) as client:
        client.pause(queue)
    echo(f"{queue} is paused")


@queue.command(short_help="End a pause.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@url_option
def resume(queue: str, url: str) -> None:
    """Deliver messages again; consumers that wait are served at once."""
    with connect(url) as client:
        client.resume(queue)
    echo(f"{queue} goes on")


@queue.command(short_help="Remove all messages.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@yes_option
@json_option
@url_option
def purge(queue: str, yes: bool, as_json: bool, url: str) -> None:
    """Remove all messages of a queue, also delayed ones and those that consumers have leased.

    Asks first; without a terminal it needs --yes.

    \f
    Removes what was sent before the command; what is sent meanwhile stays. Deduplication ids are remembered all the
    same. If the answer is no, the exit code is 1.
    """
    with connect(url) as client:
        if not yes:
            confirm_deletion(lambda: f"{counted(client.queue_stats(queue).total, 'message')} of {queue}")
        purged = client.purge(queue)
    if as_json:
        print_json({"queue": queue, "purged": purged})
    else:
        echo(f"{counted(purged, 'message')} of {queue} removed")


@queue.command(short_help="Forget an empty queue.")
@click.argument("queue", metavar="NAME", type=QUEUE)
@url_option
def delete(queue: str, url: str) -> None:
    """Forget an empty queue and its settings. A queue that has messages has to be purged first.

    \f
    The name can be used again: the next message creates the queue anew.
    """
    with connect(url) as client:
        client.delete_queue(queue)
    echo(f"{queue} is removed")
