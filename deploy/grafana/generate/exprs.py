"""Expressions of PromQL that several panels have. `at` is a selector without its braces: 'job="$job"'.

Several servers on one database show the same gauges of queues, so these are taken once (`max by`). Counters, and what a
server knows of its own connections, are each server's: they are added up.
"""

from collections.abc import Iterable

from looks import ACCENT, HEALTH, INK, MUTED
from panels import Query

JOB = 'job="$job"'
RECENT = "$__rate_interval"
"""The window of rates: as short as Grafana finds sensible."""
QUANTILES = {0.5: ACCENT, 0.9: MUTED, 0.99: INK}
"""Shares of the values of a histogram, and the colours of their lines."""


def rate(name: str, at: str = JOB, *, by: str = "") -> str:
    """How much a counter grows in a second."""
    return f"sum{_by(by)}(rate({name}{{{at}}}[{RECENT}]))"


def quantile(share: float, name: str, at: str = JOB, *, by: str = "le", window: str = RECENT) -> str:
    """Below which value this share of a histogram's values is."""
    return f"histogram_quantile({share:g}, sum by ({by}) (rate({name}_bucket{{{at}}}[{window}])))"


def quantiles(
    name: str, at: str = JOB, *, shares: Iterable[float] = (0.5, 0.99), window: str = RECENT
) -> list[Query]:
    """A line for each of some QUANTILES of a histogram."""
    return [
        Query(quantile(share, name, at, window=window), f"p{share * 100:g}", QUANTILES[share])
        for share in shares
    ]


def once(name: str, at: str = JOB, *, by: str = "queue_name") -> str:
    """A gauge of queues, taken once."""
    return f"max by ({by}) ({name}{{{at}}})"


def total(name: str, at: str = JOB, *, by: str = "queue_name") -> str:
    """A gauge of all queues together."""
    return f"sum({once(name, at, by=by)})"


def health(at: str = JOB, *, by: str) -> str:
    """The worst level of queues, as the numbers of `looks.HEALTH`. Of queues that are shown together it is a count."""
    levels = (
        f'{number} * (forq_queue_health{{{at}, level="{level}"}} > bool 0)'
        for number, level in HEALTH.items()
    )
    return f"max{_by(by)}({' or '.join(levels)})"


def or_else(expr: str, number: int = 0) -> str:
    """A number where there is nothing; without `on ()` it would be there beside what has labels, too."""
    return f"{expr} or on () vector({number})"


def _by(labels: str) -> str:
    return f" by ({labels}) " if labels else " "
