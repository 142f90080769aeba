"""What dashboards and rules ask of Prometheus."""

import re
from typing import Any

SELECTOR = re.compile(r"(?<![\w:])((?:forq[_:]|process_)[a-zA-Z0-9_:]+|up\b)(\{[^}]*\})?")
"""A series in an expression: its name, and its labels."""


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """The panels of a dashboard that show something."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions(panel: dict[str, Any]) -> list[str]:
    """What a panel asks."""
    return [target["expr"] for target in panel["targets"]]


def filled(expr: str, job: str, queue: str) -> str:
    """An expression with Grafana's variables filled in."""
    text = expr.replace("$__rate_interval", "10m").replace("$job", job).replace("$queue", queue)
    if "$" in text:
        raise AssertionError(f"a variable is left in {text}")
    return text
