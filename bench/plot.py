"""Results as one picture for the documentation: a panel for each question, the machine and the fsync mode below."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from bench.results import Results

OURS, SECOND, YARDSTICK, FAINT = "#1f6f8b", "#e08e45", "#9aa5ab", "#c9d1d5"
PANEL_INCHES = (5.2, 3.7)
COLUMNS = 2
FOOTER_CHARACTERS = 150

Rows = list[dict[str, Any]]
Panel = Callable[[Axes, Rows], None]


def draw(results: Results, path: Path) -> None:
    """Draw all panels for which there are results. Raises ValueError if there are none."""
    panels = [
        (PANELS[name], scenario["rows"]) for name, scenario in results["scenarios"].items() if name in PANELS
    ]
    if not panels:
        raise ValueError("none of these scenarios has a plot: " + ", ".join(results["scenarios"]))
    lines = -(-len(panels) // COLUMNS)
    columns = min(COLUMNS, len(panels))
    with plt.rc_context(
        {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "forq-trio", "axes.axisbelow": True}
    ):
        figure, axes = plt.subplots(
            lines,
            columns,
            figsize=(PANEL_INCHES[0] * columns, PANEL_INCHES[1] * lines + 0.7),
            squeeze=False,
            layout="constrained",
        )
        for axis, (panel, rows) in zip(axes.flat, panels, strict=False):
            panel(axis, rows)
            axis.spines[["top", "right"]].set_visible(False)
            axis.title.set_fontweight("bold")
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        footer = "\n".join(textwrap.wrap(_footer(results), int(FOOTER_CHARACTERS * columns / COLUMNS)))
        figure.supxlabel(footer, fontsize=8, color="#555555", x=0.01, ha="left")
        path.parent.mkdir(parents=True, exist_ok=True)
        # The date is in the results; one in the file would make every drawing of the same results differ.
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
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


def _grouped_bars(
    axis: Axes, labels: Sequence[str], groups: Sequence[tuple[str, Sequence[float], str]]
) -> None:
    """Bars side by side, each with its value above it. groups: name, one value per label, colour."""
    width = 0.8 / len(groups)
    for number, (name, values, colour) in enumerate(groups):
        places = [index + (number - (len(groups) - 1) / 2) * width for index in range(len(labels))]
        bars = axis.bar(places, values, width * 0.92, label=name, color=colour)
        axis.bar_label(bars, [_short(value) for value in values], fontsize=7, padding=1)
    axis.set_xticks(range(len(labels)), labels)
    axis.yaxis.set_major_formatter(FuncFormatter(_short))
    axis.grid(axis="y", color=FAINT, linewidth=0.5)
    axis.legend(fontsize=8, frameon=False)


def _ratio(axis: Axes, rows: Rows) -> None:
    axis.set_title("Requests per second, by connections")
    _grouped_bars(
        axis,
        [f"{row['connections']}" for row in rows],
        [
            ("bare loop answering 204", [row["bare_per_second"] for row in rows], FAINT),
            ("our transport without a queue", [row["noop_per_second"] for row in rows], YARDSTICK),
            ("send", [row["send_per_second"] for row in rows], OURS),
            ("send + receive + ack", [row["cycle_per_second"] for row in rows], SECOND),
        ],
    )
    axis.margins(y=0.25)
    axis.set_xlabel("connections")


def _produce(axis: Axes, rows: Rows) -> None:
    axis.set_title("Latency of a send, milliseconds")
    _latency_bars(axis, [f"{row['connections']}" for row in rows], rows)
    axis.set_xlabel("connections")


def _latency_bars(axis: Axes, labels: Sequence[str], rows: Rows) -> None:
    groups = (("p50", "p50_ms", OURS), ("p99", "p99_ms", SECOND), ("p99.9", "p99_9_ms", YARDSTICK))
    _grouped_bars(axis, labels, [(name, [row[key] for row in rows], colour) for name, key, colour in groups])
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(FuncFormatter(_short))
    axis.margins(y=0.2)


def _crowd(axis: Axes, rows: Rows) -> None:
    paced = [row for row in rows if row["load"] != "flat out"] or rows
    row = paced[0]
    axis.set_title(f"Send to received, {row['consumers']} consumers, {row['load']}, milliseconds")
    _latency_bars(axis, [f"{row['producers']} producers"], [row])


def _backlog(axis: Axes, rows: Rows) -> None:
    steps = [row for row in rows if row["empty_p50_ms"] is not None and row["loaded_p50_ms"] is not None]
    axis.set_title("p50 on an empty queue and beside the backlog, milliseconds")
    _grouped_bars(
        axis,
        [
            row["step"].replace("GET /queues/{queue}", "GET\n/queues/{q}").replace("GET /", "GET\n/")
            for row in steps
        ],
        [
            ("empty", [row["empty_p50_ms"] for row in steps], YARDSTICK),
            ("with backlog", [row["loaded_p50_ms"] for row in steps], OURS),
        ],
    )
    axis.margins(y=0.25)


def _throughput(axis: Axes, labels: Sequence[str], values: Sequence[float], colours: Sequence[str]) -> None:
    bars = axis.barh(range(len(labels)), values, color=colours)
    axis.bar_label(bars, [_short(value) for value in values], fontsize=8, padding=2)
    axis.set_yticks(range(len(labels)), labels)
    axis.invert_yaxis()
    axis.xaxis.set_major_formatter(FuncFormatter(_short))
    axis.grid(axis="x", color=FAINT, linewidth=0.5)
    axis.margins(x=0.15)


def _batch(axis: Axes, rows: Rows) -> None:
    axis.set_title("Batches over HTTP, messages per second")
    labels = [f"{row['step']}, {row['connections']} conn." for row in rows]
    _throughput(axis, labels, [row["messages_per_second"] for row in rows], [OURS] * len(rows))


def _embedded(axis: Axes, rows: Rows) -> None:
    axis.set_title("Embedded Broker, messages per second")
    labels = [f"{row['work']}, {row['tasks']} task{'s' if row['tasks'] > 1 else ''}" for row in rows]
    _throughput(axis, labels, [row["messages_per_second"] for row in rows], [OURS] * len(rows))


def _peers(axis: Axes, rows: Rows) -> None:
    axis.set_title("put + get + ack per second, one process")
    labels = [
        f"{row['queue']}, {row['callers']}\n{row['journal']}, synchronous={row['synchronous']}: "
        + ("fsync before the answer" if row["fsync_before_answer"] else "no fsync before the answer")
        for row in rows
    ]
    colours = [OURS if row["queue"].startswith("forq") else YARDSTICK for row in rows]
    _throughput(axis, labels, [row["put_get_ack_per_second"] for row in rows], colours)
    axis.tick_params(axis="y", labelsize=7)


PANELS: dict[str, Panel] = {
    "ratio": _ratio,
    "produce": _produce,
    "1c1p": _crowd,
    "40c20p": _crowd,
    "batch": _batch,
    "embedded": _embedded,
    "backlog": _backlog,
    "peers": _peers,
}
