"""`python -m bench`: run scenarios, print their tables, draw their plot."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console

from bench.report import machine, results, table
from bench.scenarios.context import Context
from bench.scenarios.registry import SCENARIOS
from bench.scenarios.settings import PRESETS
from bench.soak.command import soak, soak_verdict
from bench.targets.servers import ServerError, running_server

# By convention on a disk, which /tmp need not be.
DATA_DIR = "/var/tmp"
WIDTH_NOT_A_TERMINAL = 170


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command("list")
def list_scenarios() -> None:
    """Name the scenarios."""
    for name, scenario in SCENARIOS.items():
        click.echo(f"{name:16} {scenario.about}")


@main.command()
@click.argument("names", nargs=-1, type=click.Choice(list(SCENARIOS)), metavar="[SCENARIO]...")
@click.option("--set", "preset", type=click.Choice(list(PRESETS)), default="standard", help="How much to do.")
@click.option("--connections", metavar="N,N,...", help="Instead of the set's numbers of connections.")
@click.option("--seconds", type=float, help="Instead of the set's time for each measurement.")
@click.option("--rounds", type=int, help="Instead of the set's number of rounds.")
@click.option("--durability", type=click.Choice(["full", "normal"]), default="full", help="FORQ_DURABILITY.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False, exists=True), default=DATA_DIR)
@click.option("--url", help="Measure this running server instead of starting ours.")
@click.option("--key", default="", help="Its API key.")
@click.option("--pid", type=int, help="Its process id, for CPU and memory.")
@click.option("--fsync", "fsync", help="Its durability in words, if it does not say itself.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="The JSON file to write.")
def run(
    names: Sequence[str],
    preset: str,
    connections: str | None,
    seconds: float | None,
    rounds: int | None,
    durability: Literal["full", "normal"],
    data_dir: Path,
    url: str | None,
    key: str,
    pid: int | None,
    fsync: str | None,
    output: Path | None,
) -> None:
    """Run the named scenarios, or all, and write bench/results/*.json."""
    console = Console(stderr=True)
    kind = machine.filesystem(data_dir)
    if kind in machine.MEMORY_FILESYSTEMS:
        raise click.ClickException(
            f"{data_dir} is on {kind}, where fsync costs nothing; name a disk: --data-dir"
        )
    settings = PRESETS[preset]
    if connections:
        settings = replace(settings, connections=tuple(int(part) for part in connections.split(",")))
    if seconds:
        settings = replace(settings, seconds=seconds)
    if rounds:
        settings = replace(settings, rounds=rounds)
    try:
        remote = running_server(url, key, pid, fsync) if url else None
        context = Context(
            settings, data_dir, durability, remote, lambda text: console.print(text, highlight=False)
        )
        measured = measure(context, names or list(SCENARIOS))
    except (ServerError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    path = output or results.RESULTS_DIR / results.file_name(measured)
    results.save(measured, path)
    table.show(measured, _terminal())
    click.echo(f"\nwritten to {path}")
    if any("failed" in scenario for scenario in measured["scenarios"].values()):
        sys.exit(1)


def measure(context: Context, names: Sequence[str]) -> results.Results:
    """Run scenarios in order and return their results; what stops one is kept as its "failed", and the rest runs."""
    promise = context.remote.durability if context.remote else f"fsync={context.durability}"
    about: dict[str, Any] = {
        **machine.describe(context.data_dir, context.settings.fsync_probes),
        "server": context.remote.name if context.remote else "forq-trio",
        "durability": promise,
        "settings": context.settings.name,
        "body_bytes": context.settings.body_bytes,
    }
    busy_percent = about["machine"]["busy_percent_before"]
    if busy_percent > machine.BUSY_PERCENT_QUIET:
        context.say(f"WARNING: the machine is already {busy_percent} % busy; only ratios will mean much")
    scenarios: dict[str, dict[str, Any]] = {}
    for name in names:
        scenario = SCENARIOS[name]
        if scenario.needs_own and context.remote:
            context.say(f"SKIPPED {name}: it does not go through a URL")
            continue
        context.say(f"{name}: {scenario.about}")
        scenarios[name] = {"about": scenario.about, "durability": scenario.durability or promise, "rows": []}
        try:
            scenarios[name]["rows"] = scenario.run(context)
        except (ServerError, OSError) as error:
            context.say(f"FAILED {name}: {error}")
            scenarios[name]["failed"] = str(error)
    return {"about": about, "scenarios": scenarios}


@main.command("table")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--markdown", is_flag=True, help="As Markdown, for the documentation.")
def show_table(path: Path, markdown: bool) -> None:
    """Print the tables of a results file."""
    loaded = results.load(path)
    if markdown:
        click.echo(table.markdown(loaded), nl=False)
    else:
        table.show(loaded, _terminal())


def _terminal() -> Console:
    """Standard output; wide enough for every column where it is not a terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH_NOT_A_TERMINAL)


@main.command("plot")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), default="docs/benchmarks.svg")
def draw_plot(path: Path, output: Path) -> None:
    """Draw the plot of a results file; the output's ending says its format (.svg, .png)."""
    try:
        from bench.report.plot import draw
    except ImportError as error:
        raise click.ClickException(f"drawing needs matplotlib, of the extra bench: {error}") from error
    draw(results.load(path), output)
    click.echo(f"drawn to {output}")


main.add_command(soak)
main.add_command(soak_verdict)

if __name__ == "__main__":
    sys.exit(main())
