"""A command that consists of commands and, for a misspelt one, names the nearest: `forq help` is `forq --help`."""

import difflib

import click


class CommandGroup(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as problem:
            options = [name for each in self.get_params(ctx) for name in each.opts]
            close = difflib.get_close_matches(args[0], [*self.list_commands(ctx), *options], n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"{problem.message}{hint}", ctx) from None
