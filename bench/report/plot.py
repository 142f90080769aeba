"""Results as one picture for the documentation: a panel for each question, the machine and the fsync mode below."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullFormatter

from bench.report.results import Results

OURS, SECOND, YARDSTICK, FAINT = "#1f6f8b", "#e08e45", "#9aa5ab", "#c9d1d5"
PANEL_INCHES = (6.4, 3.9)
COLUMNS = 2
FOOTER_CHARACTERS_PER_COLUMN = 110

Rows = list[dict[str, Any]]
Panel = Callable[[Axes, Rows], None]


def draw(results: Results, path: Path) -> None:
    """Draw all panels for which there are results, as SVG or PNG by the path's ending.

    Raises ValueError if there are none.
    """
    scenarios = results["scenarios"]
    panels = [
        (panel, rows)
        for names, panel in PANELS.items()
        if (rows := [row for name in names if name in scenarios for row in scenarios[name]["rows"]])
    ]
    if not panels:
        raise ValueError("none of these scenarios has a plot: " + ", ".join(scenarios))
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with plt.rc_context(
        {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "forq", "axes.axisbelow": True}
    ):
        figure, axes = plt.subplots(
            lines,
            columns,
            figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * lines + 0.6),
            squeeze=False,
            layout=ConstrainedLayoutEngine(w_pad=0.25, h_pad=0.15),
        )
        for axis, (panel, rows) in zip(axes.flat, panels, strict=False):
            panel(axis, rows)
            axis.spines[["top", "right"]].set_visible(False)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        footer = "\n".join(textwrap.wrap(_footer(results), FOOTER_CHARACTERS_PER_COLUMN * columns))
        figure.supxlabel(footer, fontsize=8, color="#555555", x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        # The date is in the results; one in the file would make every drawing of the same results differ.
        figure.savefig(path, dpi=100, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _footer(results: Results) -> str:
    about = results["about"]
    machine, storage = about["machine"], about["storage"]
    return (
        f"{about['durability']}; {machine['cpu']}, {machine['cores']} cores shared with the load generator, "
        f"Linux {machine['kernel']}, {storage['filesystem']} with fdatasync p50 {storage['fdatasync_p50_ms']} ms; "
        f"bodies of {about['body_bytes']} bytes; Python {about['versions']['python']}, commit {about['commit']}, "
        f"{about['date'][:10]}"
    )


def _short(value: float, _: object = None) -> str:
    return f"{value / 1_000:.3g} k" if value >= 1_000 else f"{value:.3g}"


def _title(axis: Axes, text: str, *, legend_lines: int = 0) -> None:
    axis.set_title(text, loc="left", fontweight="bold", pad=8 + 14 * legend_lines)


def _grouped_bars(
    axis: Axes, title: str, labels: Sequence[str], groups: Sequence[tuple[str, Sequence[float], str]]
) -> None:
    """Bars side by side, each with its value above it. groups: name, one value per label, colour."""
    _title(axis, title, legend_lines=1)
    width = 0.86 / len(groups)
    for number, (name, values, colour) in enumerate(groups):
        places = [index + (number - (len(groups) - 1) / 2) * width for index in range(len(labels))]
        bars = axis.bar(places, values, width * 0.94, label=name, color=colour)
        axis.bar_label(bars, [_short(value) for value in values], fontsize=6.5, padding=1)
    axis.set_xticks(range(len(labels)), labels)
    axis.margins(y=0.08)
    axis.set_xlim(-0.6, max(len(labels), 2) - 0.4)
    axis.yaxis.set_major_formatter(FuncFormatter(_short))
    axis.grid(axis="y", color=FAINT, linewidth=0.5)
    axis.legend(
        fontsize=8,
        frameon=False,
        ncols=len(groups),
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.99),
        borderaxespad=0,
        columnspacing=1.2,
        handlelength=1.2,
    )


def _latency_bars(axis: Axes, title: str, labels: Sequence[str], rows: Rows) -> None:
    groups = (("p50", "p50_ms", OURS), ("p99", "p99_ms", SECOND), ("p99.9", "p99_9_ms", YARDSTICK))
    values = [(name, [row[key] for row in rows], colour) for name, key, colour in groups]
    _grouped_bars(axis, title, labels, values)
    axis.set_yscale("log")
    axis.set_ylim(bottom=min(min(part) for _, part, _ in values) / 2)
    axis.yaxis.set_major_formatter(FuncFormatter(_short))
    axis.yaxis.set_minor_formatter(NullFormatter())


def _lying_bars(
    axis: Axes, title: str, labels: Sequence[str], values: Sequence[float], colours: Sequence[str]
) -> None:
    """Bars one below the other, each with its label above it: room for long labels."""
    _title(axis, title)
    bars = axis.barh(range(len(labels)), values, height=0.42, color=colours)
    axis.bar_label(bars, [_short(value) for value in values], fontsize=8, padding=3)
    for index, label in enumerate(labels):
        axis.text(0, index - 0.28, f" {label}", fontsize=8, va="bottom", ha="left")
    axis.set_yticks([])
    axis.set_ylim(len(labels) - 0.6, -0.75)
    axis.xaxis.set_major_formatter(FuncFormatter(_short))
    axis.grid(axis="x", color=FAINT, linewidth=0.5)
    axis.margins(x=0.12)


def _ratio(axis: Axes, rows: Rows) -> None:
    _grouped_bars(
        axis,
        "Requests per second over HTTP, by connections",
        [f"{row['connections']}" for row in rows],
        [
            ("bare loop answering 204", [row["bare_per_second"] for row in rows], FAINT),
            ("our transport, no queue", [row["noop_per_second"] for row in rows], YARDSTICK),
            ("send", [row["send_per_second"] for row in rows], OURS),
            ("send, receive, ack", [row["cycle_per_second"] for row in rows], SECOND),
        ],
    )


def _produce(axis: Axes, rows: Rows) -> None:
    labels = [f"{row['connections']}" for row in rows]
    _latency_bars(axis, "Latency of a send by connections, milliseconds, flat out", labels, rows)


def _handoff(axis: Axes, rows: Rows) -> None:
    paced = [row for row in rows if row["load"] != "flat out"] or rows
    labels = [f"{row['producers']} to {row['consumers']}\n{row['load']}" for row in paced]
    _latency_bars(axis, "Producer to waiting consumer, milliseconds", labels, paced)


def _batch(axis: Axes, rows: Rows) -> None:
    labels = [f"{row['step']}, {row['connections']} connection{_plural(row['connections'])}" for row in rows]
    values = [row["messages_per_second"] for row in rows]
    _lying_bars(axis, "Batches over HTTP, messages per second", labels, values, [OURS] * len(rows))


def _embedded(axis: Axes, rows: Rows) -> None:
    labels = [f"{row['work']}, {row['tasks']} task{_plural(row['tasks'])}" for row in rows]
    values = [row["messages_per_second"] for row in rows]
    _lying_bars(axis, "Embedded (Broker), messages per second", labels, values, [OURS] * len(rows))


def _backlog(axis: Axes, rows: Rows) -> None:
    steps = [row for row in rows if row["empty_p50_ms"] is not None and row["loaded_p50_ms"] is not None]
    _grouped_bars(
        axis,
        "With and without a backlog, p50 in milliseconds",
        [row["step"].replace("GET /", "/").replace("{queue}", "{q}") for row in steps],
        [
            ("empty", [row["empty_p50_ms"] for row in steps], YARDSTICK),
            ("beside the backlog", [row["loaded_p50_ms"] for row in steps], OURS),
        ],
    )


def _peers(axis: Axes, rows: Rows) -> None:
    labels = [
        f"{row['queue']}, {row['callers']} - {row['journal']}, {row['synchronous']}: "
        + ("fsync before the answer" if row["fsync_before_answer"] else "no fsync before the answer")
        for row in rows
    ]
    colours = [OURS if row["queue"].startswith("forq") else YARDSTICK for row in rows]
    values = [row["put_get_ack_per_second"] for row in rows]
    _lying_bars(axis, "Queues on SQLite in Python, put + get + ack per second", labels, values, colours)


def _plural(count: int) -> str:
    return "" if count == 1 else "s"


PANELS: dict[tuple[str, ...], Panel] = {
    ("ratio",): _ratio,
    ("produce",): _produce,
    ("1c1p", "10c10p", "40c20p"): _handoff,
    ("batch",): _batch,
    ("backlog",): _backlog,
    ("embedded",): _embedded,
    ("peers",): _peers,
}
