"""Families of series in /metrics, as they are now. Names, labels and help texts are closed and stable.

Who has a fact declares its family in one line with the reading of it, in a function that is called at every scrape:

    def families(self) -> Iterator[Family]:
        yield gauge("forq_log_bytes", "Bytes of the write-ahead log, now.", self.log_bytes)

`System.owners` lists these functions in the order of a scrape, and `metrics_text` writes what they yield. A function
yields the same families at every call, without series if there is nothing. docs/reference/metrics.md is made of them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeVar

from forq_trio.model import limits
from forq_trio.telemetry.histogram import Histogram

QUEUE_LABELS = ("queue_name", "queue_type")

QueueKey = tuple[str, bool]
"""A queue's name, or "other" past the bound, and whether it is a dead-letter queue."""

Text = TypeVar("Text", bound=str)

Number = float | str
"""A value; a text is a number as it is to be shown."""


class Family(NamedTuple):
    """Series of one name as they are now."""

    type: Literal["counter", "gauge", "histogram"]  # in Prometheus' sense
    name: str
    meaning: str
    labels: tuple[str, ...]  # their names
    series: Iterable[tuple[str, Number]] = ()  # the labels of each as text, "" without any, and its value
    histograms: Iterable[tuple[str, Histogram]] = ()  # the same of histograms
    divisor: int = 1  # of the unit of histograms to that of the series


class Labelled(NamedTuple):
    """Series with labels: the names of the labels; for each series the labels as text and its value."""

    labels: tuple[str, ...]
    series: Iterable[tuple[str, Number]]


ReadFamilies = Callable[[], Iterable[Family]]
"""The families of one owner. Is called at every scrape, so it runs no query and does not wait."""


def gauge(name: str, meaning: str, values: Number | Labelled | None) -> Family:
    """What may rise and fall. values: of one series without labels, None where there is none now; or of several."""
    return Family("gauge", name, meaning, *_labelled(values))


def counter(name: str, meaning: str, values: Number | Labelled) -> Family:
    """What only rises."""
    return Family("counter", name, meaning, *_labelled(values))


def histogram(name: str, meaning: str, values: Histogram, divisor: int = 1) -> Family:
    """One histogram without labels. divisor: see `Family`."""
    return Family("histogram", name, meaning, (), histograms=[("", values)], divisor=divisor)


def by_label(label: str, values: Mapping[Text, Number]) -> Labelled:
    """A series for each value of one label."""
    return Labelled((label,), [(f'{label}="{text}"', value) for text, value in values.items()])


def by_labels(labels: tuple[str, ...], values: Mapping[tuple[str, ...], Number]) -> Labelled:
    """A series for each combination of these labels."""
    return Labelled(labels, [(label_text(labels, texts), value) for texts, value in values.items()])


def by_queue(values: Mapping[QueueKey, Number]) -> Labelled:
    """A series for each queue."""
    return Labelled(QUEUE_LABELS, [(QUEUE_TEXTS[key], value) for key, value in values.items()])


def by_queue_and(
    label: str, texts: Iterable[str], values: Iterable[tuple[QueueKey, tuple[Number, ...]]]
) -> Labelled:
    """Series for each queue, one for each of these values of a further label."""
    ends = [f',{label}="{text}"' for text in texts]
    series = [
        (start + end, value)
        for key, of_queue in values
        for start in (QUEUE_TEXTS[key],)
        for end, value in zip(ends, of_queue, strict=True)
    ]
    return Labelled((*QUEUE_LABELS, label), series)


def label_text(labels: tuple[str, ...], texts: Iterable[object]) -> str:
    """Labels as Prometheus writes them."""
    return ",".join([f'{label}="{text}"' for label, text in zip(labels, texts, strict=True)])


class _QueueTexts(dict[QueueKey, str]):
    """The labels of queues, made once: with 1,000 queues a scrape needs each of them twenty times."""

    def __missing__(self, key: QueueKey) -> str:
        queue, is_dlq = key
        if len(self) >= 2 * limits.METRIC_QUEUES_MAX:  # most are of queues that are gone
            self.clear()
        # A name needs no escaping (letters, digits, dots, dashes and underscores).
        text = self[key] = f'queue_name="{queue}",queue_type="{"dlq" if is_dlq else "regular"}"'
        return text


QUEUE_TEXTS = _QueueTexts()


def _labelled(values: Number | Labelled | None) -> Labelled:
    if isinstance(values, Labelled):
        return values
    return Labelled((), () if values is None else [("", values)])
