"""`forq relay`: sends what an application wrote into the outbox of its database."""

from typing import TYPE_CHECKING

import click

from forq_trio.cli.connection import secret_for
from forq_trio.cli.exits import CliFailure
from forq_trio.cli.options import url_option
from forq_trio.cli.output import echo, visible
from forq_trio.telemetry.words import counted

if TYPE_CHECKING:
    from forq_trio.model.outboxes.types import OutboxRefusal


@click.command()
@click.argument("database")
@click.option("--once", is_flag=True, help="Send what is committed now, and end.")
@url_option
def relay(database: str, once: bool, url: str) -> None:
    """Send the messages that an application commits into the outbox of its DATABASE, each exactly once.

    It runs until it is stopped, waits while the server does not answer, and may be killed at any point. A message that
    the server refuses for good is set aside in the database and named on stderr.

    \f
    DATABASE is a file of SQLite. [outbox.md](docs/outbox.md) explains the outbox.
    """
    secret = secret_for(url)
    import sqlite3

    import anyio

    from forq_trio.client.aio import AsyncForqClient
    from forq_trio.outbox import Relay

    async def run() -> None:
        async with AsyncForqClient(url, secret) as client:
            relay = Relay(database, client, on_set_aside=_name_refused)
            if once:
                echo(f"{counted(await relay.relay_all(), 'message')} sent.")
                return
            echo(f"Sends what is committed into {database} to {url}.", err=True)
            await relay.run()

    try:
        anyio.run(run)
    except sqlite3.Error as problem:
        raise CliFailure(f"{database}: {problem}") from None


def _name_refused(refusal: "OutboxRefusal") -> None:
    echo(visible(f"Message {refusal.id} is set aside: {refusal.message} ({refusal.code})"), err=True)
