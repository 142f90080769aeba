"""The families of /metrics in Prometheus' text format.

With 1,000 queues there are tens of thousands of lines, and a general-purpose encoder would block the event loop for too
long. So label texts are made once, and the text of a histogram only when it has changed.
"""

from collections.abc import Sequence
from itertools import accumulate

from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.telemetry.histogram import Histogram


class Exposition:
    """Writes the families of the same owners, in their order, at every scrape; caches the texts of histograms."""

    def __init__(self, owners: Sequence[ReadFamilies]) -> None:
        self._owners = owners
        self._histograms: dict[tuple[str, str], _HistogramText] = {}  # by name and labels, of the last scrape

    def text(self) -> str:
        """All families, as of now."""
        earlier, self._histograms = self._histograms, {}
        parts: list[str] = []
        for families in self._owners:
            for family in families():
                name = family.name
                parts.append(f"# HELP {name} {family.meaning}\n# TYPE {name} {family.type}\n")
                if family.labels:
                    parts += [f"{name}{{{labels}}} {value}\n" for labels, value in family.series]
                else:
                    parts += [f"{name} {value}\n" for _, value in family.series]
                for labels, histogram in family.histograms:
                    written = earlier.get((name, labels))
                    if written is None or written.histogram is not histogram:
                        written = _HistogramText(family, labels, histogram)
                    self._histograms[name, labels] = written
                    parts.append(written.text())
        return "".join(parts)


class _HistogramText:
    """The lines of one histogram, cached until it changes."""

    def __init__(self, family: Family, labels: str, histogram: Histogram) -> None:
        name, divisor = family.name, family.divisor
        separator = "," if labels else ""
        bounds = [f"{bound / divisor:g}" for bound in histogram.bounds]
        braces = f"{{{labels}}}" if labels else ""
        self._starts = [f'{name}_bucket{{{labels}{separator}le="{bound}"}} ' for bound in (*bounds, "+Inf")]
        self._starts += [f"{name}_sum{braces} ", f"{name}_count{braces} "]
        self.histogram = histogram
        self._divisor = divisor
        self._count = -1
        self._text = ""

    def text(self) -> str:
        buckets = list(accumulate(self.histogram.counts))
        count = buckets[-1]
        if count != self._count:
            self._count = count
            values = (*buckets, self.histogram.sum / self._divisor, count)
            self._text = "".join(
                f"{start}{value}\n" for start, value in zip(self._starts, values, strict=True)
            )
        return self._text
