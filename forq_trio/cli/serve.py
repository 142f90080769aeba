"""`forq serve` and `forq config`: both take every setting, except secrets, as an option.

The settings are imported only when a command needs them: they import pydantic, for which `forq --help` would wait.
"""

import os
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.init import CONFIG_NAME
from forq_trio.cli.output import echo
from forq_trio.cli.tables import CellKind, Column, print_table
from forq_trio.model.errors import StorageOpenError

if TYPE_CHECKING:
    from forq_trio.config.load import Loaded
    from forq_trio.config.settings import ServerSetting


_APART = "sasquatch"
_GLUED = "\x1f"
"""A blank at which a line of the help is not broken."""
_GLUED_LENGTH_MAX = 44  # the width of the texts at 80 columns
_LISTED = (
    Column("section", spare=1),
    Column("setting"),
    Column("value", CellKind.NAME),
    Column("source", CellKind.NAME),
)


class _SettingOption(click.Option):
    """An option for a setting."""

    def __init__(self, *arguments: Any, setting: "ServerSetting", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.setting = setting


def _setting_options() -> list[click.Parameter]:
    from forq_trio.config.settings import SETTINGS

    options: list[click.Parameter] = []
    for setting in SETTINGS.values():
        if setting.option is not None:
            names = [setting.option, setting.name]
            if setting.name == "db_path":
                names.insert(1, "--db")
            # Without a value, an option that is true or false means true: --memory.
            alone: dict[str, Any] = {"metavar": setting.form.metavar}
            if isinstance(setting.default, bool):
                alone = {"metavar": f"[{setting.form.metavar}]", "is_flag": False, "flag_value": "true"}
            options.append(_SettingOption(names, setting=setting, help=setting.doc, **alone))
    return options


def _setting_row(setting: "ServerSetting", option: str | None) -> tuple[str, str]:
    """The row of the help for a setting. option: its option as it is typed; None for a secret, which has none."""
    default = "required" if setting.field.is_required() else f"default: {setting.default_words}"
    more = f"[{setting.variable if option else setting.form.allowed}; {_glued(default)}]"
    return option or f"{setting.variable} {setting.form.metavar}", f"{setting.doc}  {_glued(more)}"


def _glued(text: str) -> str:
    """The text in one piece, if it fits on a line."""
    return text.replace(" ", _GLUED) if len(text) <= _GLUED_LENGTH_MAX else text


def _write_section(
    ctx: click.Context, formatter: click.HelpFormatter, heading: str, rows: Sequence[tuple[str, str]]
) -> None:
    part = ctx.make_formatter()
    with part.section(heading):
        part.write_dl(rows)
    formatter.write_paragraph()
    formatter.write(part.getvalue().replace(_GLUED, " "))


class _WithSettings(click.Command):
    """A command with every setting as an option, after those of its own, under the heading of its section.

    The help also names the settings without an option, by their variables. It leaves out those of Sasquatch's API,
    which few need, and says where they are.
    """

    _own: list[click.Parameter]

    @cached_property
    def _all(self) -> list[click.Parameter]:
        return self._own + _setting_options()

    @property
    def params(self) -> list[click.Parameter]:
        return self._all

    @params.setter
    def params(self, own: list[click.Parameter]) -> None:
        self._own = own

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = [each for each in self.get_params(ctx) if not isinstance(each, _SettingOption)]
        records = [record for each in own if (record := each.get_help_record(ctx)) is not None]
        _write_section(ctx, formatter, "Options", records)
        for section, rows in self._sections(ctx).items():
            if section != _APART:
                _write_section(ctx, formatter, f"[{section}]", rows)

    def show_apart(self, ctx: click.Context) -> None:
        formatter = ctx.make_formatter()
        _write_section(ctx, formatter, f"[{_APART}]", self._sections(ctx)[_APART])
        echo(formatter.getvalue(), nl=False)

    def _sections(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """The rows of all settings, by section."""
        from forq_trio.config.settings import SETTINGS

        options = {each.setting.name: each for each in self._all if isinstance(each, _SettingOption)}
        sections: dict[str, list[tuple[str, str]]] = {}
        for setting in SETTINGS.values():
            option = options.get(setting.name)
            record = None if option is None else option.get_help_record(ctx)
            row = _setting_row(setting, record and record[0])
            sections.setdefault(setting.section, []).append(row)
        return sections

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for text in (
            "A setting is an option, an environment variable, and a key of the TOML file in the section above it:"
            " --api-addr is FORQ_API_ADDR, and api_addr in [server]. `forq config --example` prints such a file.",
            "Secrets and URLs that may have a password have no option, because everybody on a machine can read"
            " command lines.",
        ):
            formatter.write_paragraph()
            formatter.write_text(text)


def _show_apart(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        assert isinstance(context.command, _WithSettings)
        context.command.show_apart(context)
        context.exit()


_apart_option = click.option(
    f"--help-{_APART}",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_apart,
    help="Show the settings of Sasquatch's API and exit.",
)
_file_option = click.option(
    "--config", "file", metavar="FILE", type=Path, help="The TOML file.  [env var: FORQ_CONFIG]"
)


def _load(file: Path | None, settings: dict[str, Any]) -> "Loaded":
    from forq_trio.config.load import load

    loaded = load({name: text for name, text in settings.items() if text is not None}, file=file)
    for warning in loaded.warnings:
        echo(f"forq: {warning}", err=True)
    return loaded


@click.command(cls=_WithSettings)
@_file_option
@click.option(
    "--url-file",
    metavar="FILE",
    type=Path,
    help="Write the server's URL to this file once it listens, and below it the admin UI's; until then the file is"
    " empty.",
)
@_apart_option
def serve(file: Path | None, url_file: Path | None, **settings: Any) -> int:
    """Run the server until SIGTERM, SIGINT or SIGHUP.

    Its secret comes from FORQ_AUTH_SECRET, the file that FORQ_AUTH_SECRET_FILE names, or the TOML file. The messages
    are in a file, or in PostgreSQL if FORQ_DB_URL has the URL of a database there; then several servers can share them.
    `forq config` shows the effective settings.

    \f
    All settings but the secrets are options, too: see [settings](docs/reference/settings.md). Logs go to stderr.
    SIGTERM or SIGINT ends it in order: no new connections, waiting consumers are answered with nothing, requests under
    way finish, all is committed. What keeps it from starting (a port in use, a database that is another's or in use, a
    mistake in the configuration) is one sentence on stderr, and the database is left as it was.
    """
    loaded = _load(file, settings)
    if file is None and not os.environ.get("FORQ_CONFIG") and Path(CONFIG_NAME).is_file():
        echo(f"forq: {CONFIG_NAME} is here, and not used: --config {CONFIG_NAME} uses it", err=True)
    from forq_trio import app
    from forq_trio.config.load import DEFAULT

    try:
        if url_file is None:
            return app.run(loaded.config)
        with open(url_file, "w", encoding="utf-8") as urls:
            return app.run(loaded.config, partial(_write_urls, urls))
    except StorageOpenError as error:
        is_default = loaded.sources["db_path"] == DEFAULT and not (
            loaded.config.memory or loaded.config.db_url
        )
        advice = "; FORQ_DB_PATH or --db names another place" if is_default else ""
        raise CliFailure(f"{error}{advice}", Exit.USAGE) from error


def _write_urls(file: TextIO, url: str, ui_url: str | None) -> None:
    try:
        file.write("".join(f"{each}\n" for each in (url, ui_url) if each is not None))
        file.close()
    except OSError as problem:
        echo(f"forq: {file.name}: {problem.strerror}", err=True)


@click.command(cls=_WithSettings)
@click.option("--example", is_flag=True, help="Print a TOML file with every key and its default instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object by section and key.")
@_file_option
@_apart_option
def config(example: bool, as_json: bool, file: Path | None, **settings: Any) -> None:
    """Print the settings in effect and where each comes from; secrets are masked.

    \f
    Takes the same options as `forq serve`, so it can be asked before a server is started in the same way.
    """
    from forq_trio.config import report

    if example:
        echo(report.example(), nl=False)
        return
    loaded = _load(file, settings)
    if as_json:
        echo(report.as_json(loaded))
        return
    print_table(
        _LISTED,
        [
            (setting.section, setting.name, _text(value), source)
            for setting, value, source in report.rows(loaded)
        ],
    )


def _text(value: str | int | bool | None) -> str:
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
