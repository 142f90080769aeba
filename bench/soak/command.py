"""`python -m bench soak`: run it, judge it, draw it; and `soak-verdict`, the same for a record that is there."""

import sys
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from bench.report import machine
from bench.report.results import RESULTS_DIR
from bench.soak import record
from bench.soak.run import Soak, run
from bench.soak.verdict import Judgement, judge
from bench.targets.servers import ServerError

# By convention on a disk, which /tmp need not be.
DATA_DIR = "/var/tmp"
MINUTES = 30.0
WIDTH_NOT_A_TERMINAL = 150

Drawing = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.07), default=MINUTES, show_default=True)
@click.option("--rate", type=click.FloatRange(min=1), default=Soak.rate, show_default=True,
              help="Requests a second that senders make; consumers make two more for each.")  # fmt: skip
@click.option("--seed", type=int, default=0, help="Of what the clients do.")
@click.option("--durability", type=click.Choice(["full", "normal"]), default="full", help="FORQ_DURABILITY.")
@click.option("--data-dir", type=click.Path(path_type=Path, file_okay=False, exists=True), default=DATA_DIR)
@click.option("--output", type=Drawing, help="The JSON file to write; bench/results/soak-*.json without it.")
@click.option("--plot", type=Drawing, help="The picture to draw, .svg or .png.")
def soak(
    minutes: float,
    rate: float,
    seed: int,
    durability: Literal["full", "normal"],
    data_dir: Path,
    output: Path | None,
    plot: Path | None,
) -> None:
    """Run mixed load for a while and judge what must not grow; exit code 1 if something did."""
    console = Console(stderr=True)
    kind = machine.filesystem(data_dir)
    if kind in machine.MEMORY_FILESYSTEMS:
        raise click.ClickException(
            f"{data_dir} is on {kind}, where fsync costs nothing; name a disk: --data-dir"
        )
    wanted = Soak(seconds=round(minutes * 60), rate=rate, seed=seed, durability=durability)
    try:
        results = run(wanted, data_dir, lambda text: console.print(text, highlight=False))
    except (ServerError, OSError) as error:
        raise click.ClickException(str(error)) from error
    about = results["about"]
    moment = about["date"].replace(":", "").replace("+0000", "Z")
    path = output or RESULTS_DIR / f"soak-{moment}-{about['commit'].rstrip('+')}.json"
    record.save(results, path)
    click.echo(f"written to {path}")
    _conclude(results, plot)


@click.command("soak-verdict")
@click.argument("path", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--plot", type=Drawing, help="The picture to draw, .svg or .png.")
def soak_verdict(path: Path, plot: Path | None) -> None:
    """Judge the record of a soak; exit code 1 if it is not flat."""
    try:
        results = record.load(path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    _conclude(results, plot)


def _conclude(results: dict[str, Any], plot: Path | None) -> None:
    """Draw, print the verdict, and exit with it."""
    if plot is not None:
        _draw(results, plot)
    judgements = judge(results["columns"])
    show(judgements)
    click.echo(f"{results['requests']:,} requests, errors: {results['errors'] or 'none'}")
    failed = [judgement for judgement in judgements if not judgement.flat]
    if failed:
        click.echo("not flat: " + "; ".join(f"{each.about}: {each.why}" for each in failed), err=True)
        sys.exit(1)
    click.echo("flat")


def _draw(results: dict[str, Any], path: Path) -> None:
    try:
        from bench.soak.plot import draw
    except ImportError as error:
        raise click.ClickException(f"drawing needs matplotlib, of the extra bench: {error}") from error
    draw(results, path)
    click.echo(f"drawn to {path}")


def show(judgements: list[Judgement]) -> None:
    """The verdict as a table on standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH_NOT_A_TERMINAL)
    table = Table()
    for title in ("series", "compared", "2nd quarter", "last quarter", "growth", "per hour", "verdict"):
        table.add_column(title, justify="left" if title in ("series", "compared", "verdict") else "right")
    for each in judgements:
        verdict = ("flat" if each.flat else "NOT FLAT") + (f": {each.why}" if each.why else "")
        growth = "-" if each.growth is None else f"{each.growth:+.1%}"
        figures = (f"{each.second:.4g}", f"{each.last:.4g}", growth, f"{each.per_hour:+.3g}")
        table.add_row(each.about, each.how, *figures, verdict)
    console.print(table)
