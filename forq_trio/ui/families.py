"""The metrics of the admin UI, which are there without one, too. Imports none of its libraries."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forq_trio.telemetry.families import Family, by_label, counter, gauge

if TYPE_CHECKING:
    from forq_trio.ui.server import UiServer


def ui_families(server: "UiServer | None") -> Iterator[Family]:
    """The metrics of the UI; None where none is served."""
    yield gauge(
        "forq_ui_connections",
        "Open connections to the admin UI, now.",
        0 if server is None else server.connections,
    )
    seconds = {} if server is None else server.loop_seconds()
    yield counter(
        "forq_ui_loop_seconds_total",
        "Time of the event loop that the admin UI used, by the share of it that paid.",
        by_label("share", {share: f"{used:.6f}" for share, used in seconds.items()}),
    )
