"""`forq completion`: the script by which a shell completes what is typed; click makes it, `names` asks the server."""

import click
from click.shell_completion import get_completion_class

from forq_trio.cli import COMPLETION_VARIABLE
from forq_trio.cli.output import echo


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script with which the shell completes commands, options, choices, and names that the server has.

    Names are those of queues and the like. Without a server, or a secret for it, none are offered.

    \f
    A shell reads it once, when it starts; [the guide](docs/cli.md#how-does-the-shell-complete-commands) has the line
    for each.
    """
    script = get_completion_class(shell)
    assert script is not None, shell
    echo(script(context.find_root().command, {}, "forq", COMPLETION_VARIABLE).source())
