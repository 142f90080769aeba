"""Results as tables for people: on a terminal, and as Markdown for the documentation."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from bench.report.results import Results

_WIDTH_UNBOUNDED = 10_000
HIDDEN_ON_TERMINAL = frozenset({"mean_ms"})


def headline(results: Results) -> str:
    """Machine and durability in one paragraph: figures never stand without it."""
    about = results["about"]
    machine, storage = about["machine"], about["storage"]
    return (
        f"{about['date']}, commit {about['commit']}, {about['settings']} set. "
        f"Server: {about['server']}, {about['durability']}. "
        f"Machine: {machine['cpu']}, {machine['cores']} cores shared by server and load generator, "
        f"{machine['memory_gib']} GiB, Linux {machine['kernel']}, "
        f"{machine['busy_percent_before']} % busy with other work before the run. "
        f"Disk: {storage['filesystem']}, write + fdatasync of 4 KiB p50 {storage['fdatasync_p50_ms']} ms, "
        f"p99 {storage['fdatasync_p99_ms']} ms. "
        f"Bodies of {about['body_bytes']} bytes. "
        + ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        + "."
    )


def show(results: Results, console: Console) -> None:
    """Print every scenario as a table."""
    console.print(headline(results), highlight=False)
    for name, scenario in results["scenarios"].items():
        if "failed" in scenario:
            console.print(f"{name} FAILED: {scenario['failed']}", highlight=False, markup=False)
            continue
        columns = [column for column in _columns(scenario["rows"]) if column not in HIDDEN_ON_TERMINAL]
        title = f"{name} - {scenario['about']} [{scenario['durability']}]"
        table = _table(title, scenario["rows"], columns)
        unbounded = console.options.update(max_width=_WIDTH_UNBOUNDED)
        if Measurement.get(console, unbounded, table).minimum > console.width:
            table = _turned(title, scenario["rows"], columns)
        console.print(table)


def _table(title: str, rows: list[dict[str, Any]], columns: list[str]) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for column in columns:
        table.add_column(_title(column), justify="left" if _is_text(rows, column) else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    return table


def _turned(title: str, rows: list[dict[str, Any]], columns: list[str]) -> Table:
    """The table with a line for each column, for a terminal that is too narrow for all columns side by side."""
    table = Table(title=escape(title), title_justify="left", show_header=False)
    for column in columns:
        table.add_row(_title(column), *(_cell(row.get(column)) for row in rows))
    return table


def markdown(results: Results) -> str:
    """Every scenario as a Markdown table, below the headline."""
    parts = [headline(results)]
    for name, scenario in results["scenarios"].items():
        columns = _columns(scenario["rows"])
        lines = [f"### {name}", "", f"{scenario['about']} ({scenario['durability']})", ""]
        if "failed" in scenario:
            parts.append("\n".join([*lines, f"Failed: {scenario['failed']}"]))
            continue
        lines.append("| " + " | ".join(_title(column) for column in columns) + " |")
        lines.append("|" + "|".join("---" if _is_text(scenario["rows"], c) else "--:" for c in columns) + "|")
        for row in scenario["rows"]:
            lines.append("| " + " | ".join(_cell(row.get(column)) for column in columns) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _columns(rows: Iterable[dict[str, Any]]) -> list[str]:
    """All columns in order of appearance; errors only if there were any."""
    columns: dict[str, None] = {}
    for row in rows:
        columns.update(dict.fromkeys(column for column, value in row.items() if column != "errors" or value))
    return list(columns)


def _title(column: str) -> str:
    return (
        column.replace("p99_9", "p99.9").replace("_per_second", "/s").replace("_ms", " ms").replace("_", " ")
    )


def _is_text(rows: Iterable[dict[str, Any]], column: str) -> bool:
    return any(isinstance(row.get(column), str | bool | dict) for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items()) or "-"
    if isinstance(value, float):
        return (
            f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
        )
    return f"{value:,}" if isinstance(value, int) else str(value)
