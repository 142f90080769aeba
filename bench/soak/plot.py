"""A soak as one picture: a panel for each question, the two quarters that are compared shaded, the verdict above."""

import textwrap
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter

from bench.report.plot import FAINT, OURS, PANEL_INCHES, SECOND, YARDSTICK
from bench.soak.record import Columns
from bench.soak.verdict import Judgement, judge

COLUMNS = 2
POINTS_MAX = 300
FOOTER_CHARACTERS = 200


class Line(NamedTuple):
    """A series of a panel. A point is the mean over its seconds; a band shows the least and the greatest."""

    series: str
    name: str
    colour: str


class Panel(NamedTuple):
    """A question. judged: the series whose judgement is its subtitle."""

    title: str
    lines: tuple[Line, ...]
    judged: tuple[str, ...]
    logarithmic: bool = False


PANELS = (
    Panel(
        "Latency, milliseconds",
        (
            Line("p99_ms", "p99", SECOND),
            Line("p50_ms", "p50", OURS),
            Line("yardstick_p50_ms", "p50 of the yardstick", YARDSTICK),
        ),
        ("p50_ms",),
        logarithmic=True,
    ),
    Panel("Memory (RSS), MiB", (Line("rss_mib", "", OURS),), ("rss_mib",)),
    Panel("File descriptors", (Line("file_descriptors", "", OURS),), ("file_descriptors",)),
    Panel(
        "Files, MiB",
        (Line("log_mib", "write-ahead log", OURS), Line("database_mib", "database", SECOND)),
        ("log_mib", "database_mib"),
    ),
    Panel(
        "Requests a second",
        (Line("requests_per_second", "answered", OURS), Line("errors", "errors", SECOND)),
        ("requests_per_second", "errors"),
    ),
    Panel(
        "Messages stored",
        (
            Line("stored", "all", OURS),
            Line("delayed", "delayed", YARDSTICK),
            Line("dead", "dead letters", SECOND),
        ),
        ("stored",),
    ),
)


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw a soak as SVG or PNG, by the path's ending. The same results make the same file."""
    columns: Columns = results["columns"]
    judgements = {judgement.series: judgement for judgement in judge(columns)}
    lines = -(-len(PANELS) // COLUMNS)
    style = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "forq", "axes.axisbelow": True}
    with plt.rc_context(style):
        figure, axes = plt.subplots(
            lines,
            COLUMNS,
            figsize=(PANEL_INCHES[0] * COLUMNS, 3.1 * lines + 0.6),
            squeeze=False,
            layout=ConstrainedLayoutEngine(w_pad=0.25, h_pad=0.15),
        )
        for axis, panel in zip(axes.flat, PANELS, strict=False):
            _draw_panel(axis, panel, columns, [judgements[series] for series in panel.judged])
        footer = "\n".join(textwrap.wrap(_footer(results), FOOTER_CHARACTERS))
        figure.supxlabel(footer, fontsize=8, color="#555555", x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=100, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _draw_panel(axis: Axes, panel: Panel, columns: Columns, judgements: Sequence[Judgement]) -> None:
    seconds = len(columns[panel.lines[0].series])
    quarter = seconds // 4
    for begin in (quarter, seconds - quarter):
        axis.axvspan(begin / 60, (begin + quarter) / 60, color=FAINT, alpha=0.3, linewidth=0)
    for line in panel.lines:
        minutes, means, least, greatest = _points(columns[line.series])
        axis.fill_between(minutes, least, greatest, color=line.colour, alpha=0.25, linewidth=0)
        axis.plot(minutes, means, color=line.colour, linewidth=1.1, label=line.name)
    if panel.logarithmic:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        axis.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    else:
        axis.set_ylim(0, axis.get_ylim()[1] * 1.15)
    axis.set_xlim(0, seconds / 60)
    axis.set_xlabel("minutes", fontsize=8)
    axis.set_title(panel.title, loc="left", fontweight="bold", pad=8 + 10 * len(judgements))
    told = "\n".join(map(told_in_short, judgements))
    axis.text(0, 1.03, told, transform=axis.transAxes, fontsize=7.5, color="#555555", va="bottom")
    axis.grid(axis="y", color=FAINT, linewidth=0.5)
    axis.spines[["top", "right"]].set_visible(False)
    if len(panel.lines) > 1:
        axis.legend(fontsize=8, frameon=False, ncols=len(panel.lines), loc="upper right")


def told_in_short(judgement: Judgement) -> str:
    """A judgement in one line."""
    outcome = "flat" if judgement.flat else "NOT FLAT"
    why = f" ({judgement.why})" if judgement.why else ""
    figures = f"{judgement.how} {judgement.second:.4g} → {judgement.last:.4g}"
    return f"{judgement.series}: {figures}, {outcome}{why}"


def _points(values: Sequence[float | None]) -> tuple[list[float], list[float], list[float], list[float]]:
    """At most POINTS_MAX points: the middle of their seconds in minutes, mean, least and greatest; nan for none."""
    width = -(-len(values) // POINTS_MAX)
    minutes, means, least, greatest = [], [], [], []
    for begin in range(0, len(values), width):
        known = [value for value in values[begin : begin + width] if value is not None] or [nan]
        minutes.append((begin + width / 2) / 60)
        means.append(sum(known) / len(known))
        least.append(min(known))
        greatest.append(max(known))
    return minutes, means, least, greatest


def _footer(results: dict[str, Any]) -> str:
    about = results["about"]
    cpu, storage, versions = about["machine"], about["storage"], about["versions"]
    return (
        f"{results['requests']:,} requests, {sum(results['errors'].values())} errors; the shaded quarters are "
        f"compared. {about['durability']}; {cpu['cpu']}, {cpu['cores']} cores shared with the load, Linux "
        f"{cpu['kernel']}, {storage['filesystem']} with fdatasync p50 {storage['fdatasync_p50_ms']} ms; Python "
        f"{versions['python']}, commit {about['commit']}, {about['date'][:10]}"
    )
