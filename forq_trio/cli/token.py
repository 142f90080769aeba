"""`forq token …`: access tokens, for those who do not have the secret."""

import click

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import CliFailure
from forq_trio.cli.groups import CommandGroup
from forq_trio.cli.names import ServerName
from forq_trio.cli.options import duration_option, json_option, url_option
from forq_trio.cli.output import ago, echo, print_json
from forq_trio.cli.tables import CellKind, Column, print_list
from forq_trio.model import durations
from forq_trio.model.access.bodies import CreatedToken, TokenInfo
from forq_trio.model.access.types import Scope
from forq_trio.model.clock import machine_ms

_TOKEN = ServerName(lambda client, _: (each.name for each in client.tokens()))
_COLUMNS = (
    Column("name", CellKind.NAME),
    Column("scopes", CellKind.TEXT),
    Column("queues", CellKind.NAME, spare=4),
    Column("created", spare=1),
    Column("expires", spare=3),
    Column("last used", spare=2),
)

_ALONE = [scope.value for scope in Scope if scope is not Scope.ADMIN]


@click.group(cls=CommandGroup)
def token() -> None:
    """Tokens for clients that should not have the server's secret. They are used instead of it, and allow less.

    \f
    What they allow is in [access.md](docs/access.md). These commands need the secret, or a token with the scope
    `admin` for all queues.
    """


@token.command(short_help="Make a token and print it, once.")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice([scope.value for scope in Scope]),
    multiple=True,
    required=True,
    metavar="SCOPE",
    help=f"Allows {', '.join(_ALONE)} or admin (all of these); may be repeated.",
)
@click.option(
    "--queues",
    metavar="GLOB",
    default="*",
    show_default=True,
    help="Which queues it is for, such as 'orders*'.",
)
@duration_option("--expires", "life_ms", help="How long it is valid.  [default: until it is revoked]")
@click.option("--sqs", "as_sqs", is_flag=True, help="Print the token as keys for clients of Amazon SQS.")
@json_option
@url_option
def create(
    name: str,
    scopes: tuple[str, ...],
    queues: str,
    life_ms: int | None,
    as_sqs: bool,
    as_json: bool,
    url: str,
) -> None:
    """Make a token and print its text, which the server does not store.

    \f
    The text alone goes to stdout, so `FORQ_AUTH_SECRET="$(forq token create ...)"` works; with `--sqs` two lines for
    the shell, so `eval "$(forq token create ... --sqs)"` does; with `--json` an object of `name`, `token`,
    `accessKeyId` and `secretAccessKey`.
    """
    expires_at = None if life_ms is None else machine_ms() + life_ms
    with connect(url) as client:
        created = client.create_token(name, map(Scope, scopes), queues, expires_at=expires_at)
    if as_json:
        print_json(created)
    else:
        echo(_exports(created) if as_sqs else created.token)
        echo("Keep it now: it is not shown again.", err=True)


def _exports(created: CreatedToken) -> str:
    """Lines that set what Amazon's clients read. Raises CliFailure if the server made none."""
    if created.access_key_id is None:
        raise CliFailure(
            f"the server makes no keys for clients of Amazon SQS; the token {created.name} is made and can be revoked"
        )
    return f"export AWS_ACCESS_KEY_ID={created.access_key_id}\nexport AWS_SECRET_ACCESS_KEY={created.secret_access_key}"


@token.command("list", short_help="List all tokens.")
@json_option
@url_option
def list_(as_json: bool, url: str) -> None:
    """List all tokens: what they allow, how long they are good for, and when they were last used.

    \f
    With `--json` an object for each: `name`, `scopes`, `queues`, `createdAt`, `expiresAt`, `lastUsedAt`, `expired`;
    times in ms since the epoch, `null` for never.
    """
    with connect(url) as client:
        found = client.tokens()
    print_list(found, as_json, _COLUMNS, _row, "There is no token; `forq token create` makes one.")


def _row(token: TokenInfo) -> tuple[object, ...]:
    return (
        token.name,
        ",".join(token.scopes),
        token.queues,
        f"{ago(token.created_at)} ago",
        _expiry(token),
        "never" if token.last_used_at is None else f"{ago(token.last_used_at)} ago",
    )


def _expiry(token: TokenInfo) -> str:
    if token.expires_at is None:
        return "never"
    return "expired" if token.expired else f"in {durations.about(token.expires_at - machine_ms())}"


@token.command(short_help="Revoke a token.")
@click.argument("name", type=_TOKEN)
@url_option
def revoke(name: str, url: str) -> None:
    """Revoke a token, at once and for good. Its name is free again.

    \f
    For a name that no token has the exit code is 5.
    """
    with connect(url) as client:
        client.revoke_token(name)
    echo(f"{name} is revoked")
