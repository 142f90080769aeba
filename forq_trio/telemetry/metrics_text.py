"""The families of /metrics in Prometheus' text format, and in that of OpenMetrics 1.0.

With 1,000 queues there are tens of thousands of lines, and a general-purpose encoder would block the event loop for too
long. So label texts are made once, and the text of a histogram only when it has changed.

OpenMetrics differs in few things: a counter is declared without `_total` (`declaration`), the bounds of buckets have a
decimal point, and buckets may have exemplars. The end, `# EOF`, is written by who writes the last family.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import repeat

from forq_trio.model.limits import SECOND_MS
from forq_trio.telemetry.families import Family, ReadFamilies
from forq_trio.telemetry.histogram import Exemplar, Histogram


def declaration(family: Family, names: Container[str]) -> tuple[str, str]:
    """The name and the type by which OpenMetrics declares a family: that of a counter has no `_total`.

    names: of all families. If one of them has the name that is left, the counter keeps its own, without a type: series
    are called the same in both formats, whatever they are declared as.
    """
    if family.type != "counter":
        return family.name, family.type
    name = family.name.removesuffix("_total")
    return (family.name, "unknown") if name in names else (name, family.type)


def bucket_bounds(histogram: Histogram, divisor: int, *, openmetrics: bool) -> list[str]:
    """The upper bounds of the buckets, as the label `le` has them. divisor: see `Family`."""
    bounds = [bound / divisor for bound in histogram.bounds]
    return [*(repr(bound) if openmetrics else f"{bound:g}" for bound in bounds), "+Inf"]


class Exposition:
    """Writes the families of the same owners, in their order, at every scrape; caches the texts of histograms.

    openmetrics: whether as OpenMetrics.
    """

    def __init__(self, owners: Sequence[ReadFamilies], *, openmetrics: bool = False) -> None:
        self._owners = owners
        self._openmetrics = openmetrics
        self._histograms: dict[tuple[str, str], _HistogramText] = {}  # by name and labels, of the last scrape

    def text(self) -> str:
        """All families, as of now."""
        earlier, self._histograms = self._histograms, {}
        families: Iterable[Family] = (family for read in self._owners for family in read())
        names: set[str] = set()
        if self._openmetrics:
            families = [*families]
            names = {family.name for family in families}
        parts: list[str] = []
        for family in families:
            name = family.name
            declared = declaration(family, names) if self._openmetrics else (name, family.type)
            parts.append(f"# HELP {declared[0]} {family.meaning}\n# TYPE {declared[0]} {declared[1]}\n")
            if family.labels:
                parts += [f"{name}{{{labels}}} {value}\n" for labels, value in family.series]
            else:
                parts += [f"{name} {value}\n" for _, value in family.series]
            for labels, histogram in family.histograms:
                written = earlier.get((name, labels))
                if written is None or written.histogram is not histogram:
                    written = _HistogramText(family, labels, histogram, openmetrics=self._openmetrics)
                self._histograms[name, labels] = written
                parts.append(written.text())
        return "".join(parts)


class _HistogramText:
    """The lines of one histogram, cached until it changes."""

    def __init__(self, family: Family, labels: str, histogram: Histogram, *, openmetrics: bool) -> None:
        name, divisor = family.name, family.divisor
        separator = "," if labels else ""
        bounds = bucket_bounds(histogram, divisor, openmetrics=openmetrics)
        braces = f"{{{labels}}}" if labels else ""
        self._starts = [f'{name}_bucket{{{labels}{separator}le="{bound}"}} ' for bound in bounds]
        self._starts += [f"{name}_sum{braces} ", f"{name}_count{braces} "]
        self.histogram = histogram
        self._openmetrics = openmetrics
        self._divisor = divisor
        self._count = -1
        self._text = ""

    def text(self) -> str:
        buckets = self.histogram.cumulative()
        count = buckets[-1]
        if count != self._count:
            self._count = count
            values = (*buckets, self.histogram.sum / self._divisor, count)
            lines = zip(self._starts, values, self._ends(), strict=False)
            self._text = "".join(f"{start}{value}{end}\n" for start, value, end in lines)
        return self._text

    def _ends(self) -> Iterator[str]:
        """What stands behind each value: the exemplar of each bucket that has one."""
        if self._openmetrics:
            yield from map(self._exemplar, self.histogram.exemplars or ())
        yield from repeat("")

    def _exemplar(self, exemplar: Exemplar | None) -> str:
        if exemplar is None:
            return ""
        labels = f'{{trace_id="{exemplar.trace_id}"}}'
        return f" # {labels} {exemplar.value / self._divisor} {exemplar.at_ms / SECOND_MS}"
