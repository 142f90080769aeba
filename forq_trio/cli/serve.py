"""`forq serve` and `forq config`: both take every setting that may be seen as an option."""

from pathlib import Path
from typing import Any

import click

from forq_trio.cli.options import CommandT
from forq_trio.cli.output import print_table
from forq_trio.config import report as config_report
from forq_trio.config.load import SETTINGS, Loaded, default_db_path, load
from forq_trio.config.values import BOOLEAN


def _setting_options(command: CommandT) -> CommandT:
    for setting in reversed(list(SETTINGS.values())):
        if setting.option is not None:
            names = [setting.option, setting.name]
            if setting.name == "db_path":
                names.insert(1, "--db")
            # Without a value, an option that is true or false means true: --memory.
            alone: dict[str, Any] = {"metavar": setting.kind.metavar}
            if setting.kind is BOOLEAN:
                alone = {"metavar": f"[{setting.kind.metavar}]", "is_flag": False, "flag_value": "true"}
            command = click.option(
                *names,
                help=f"{setting.doc}  [env var: {setting.variable}]",
                **alone,
            )(command)
    return click.option(
        "--config", "file", metavar="FILE", type=Path, help="The TOML file.  [env var: FORQ_CONFIG]"
    )(command)


def _load(file: Path | None, settings: dict[str, Any]) -> Loaded:
    return load({name: text for name, text in settings.items() if text is not None}, file=file)


@click.command(short_help="Run the server.")
@_setting_options
def serve(file: Path | None, **settings: Any) -> int:
    """Run the server until SIGTERM or SIGINT.

    Its secret comes from FORQ_AUTH_SECRET or the TOML file. `forq config` shows what would be in effect.
    """
    config = _load(file, settings).config
    if config.db_path == default_db_path() and not config.memory:
        # The default place is ours to make; any other is the operator's, and missing it is more likely a slip.
        config.db_path.parent.mkdir(parents=True, exist_ok=True)
    from forq_trio import app

    code: int = app.run(config)
    return code


@click.command(short_help="Print the settings in effect, or an example file.")
@click.option("--example", is_flag=True, help="Print a TOML file with every key and its default instead.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object by section and key.")
@_setting_options
def config(example: bool, as_json: bool, file: Path | None, **settings: Any) -> None:
    """Print the settings in effect and where each comes from; secrets are masked."""
    if example:
        click.echo(config_report.example(), nl=False)
        return
    loaded = _load(file, settings)
    if as_json:
        click.echo(config_report.as_json(loaded))
        return
    print_table(
        ("section", "setting", "value", "source"),
        [
            (setting.section, setting.name, _text(value), source)
            for setting, value, source in config_report.rows(loaded)
        ],
    )


def _text(value: str | int | bool | None) -> str:
    if value is None:
        return "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
