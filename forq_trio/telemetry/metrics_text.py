"""The counters in Prometheus' text format.

With 1,000 queues there are tens of thousands of lines, and a general-purpose encoder would block the event loop for too
long. So label texts are made once, and the text of a histogram only when it has changed. Queue names need no escaping
(they are letters, digits, dots, dashes and underscores).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate

from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.telemetry import metric_names as names
from forq_trio.telemetry.activity import Series
from forq_trio.telemetry.counters import Counters, QueueKey
from forq_trio.telemetry.histogram import Histogram
from forq_trio.telemetry.metric_names import COUNTERS, QUEUE_LABELS, STATES, Family

_MS_PER_SECOND = 1_000


class Exposition:
    """Writes the text of the same counters at every scrape, and caches its parts."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._queue_labels: dict[QueueKey, str] = {}
        self._message_histograms: dict[tuple[str, QueueKey], _HistogramText] = {}
        of_the_writer = (
            (names.COMMIT_CALLS, counters.commit_calls),
            (names.COMMIT_SECONDS, counters.commit_seconds),
            (names.CHECKPOINT_SECONDS, counters.checkpoint_seconds),
            (names.CHECKPOINT_PAUSE_SECONDS, counters.checkpoint_pause_seconds),
        )
        self._writer_histograms = [
            (family, _HistogramText(family.name, "", histogram, 1)) for family, histogram in of_the_writer
        ]

    def text(self) -> str:
        """All families of `metric_names`, in their order."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        counters = self._counters
        yield from self._events()
        yield from self._by_queue(names.DEPTH, counters.depths)
        yield from self._states()
        yield from self._by_queue(names.BYTES, {key: count.bytes for key, count in counters.counts.items()})
        yield from self._by_queue(names.DEAD_LETTERS, counters.dead_letters)
        yield from self._by_queue(names.OLDEST_AGE, counters.oldest_seconds)
        yield from self._by_queue(names.WAITING, counters.waiting())
        yield from self._health()
        yield from self._consumers()
        yield f"{_heading(names.INBOX)}{names.INBOX.name} {counters.inbox_calls()}\n"
        yield _heading(names.SENDS_REFUSED)
        refusal = counters.sends_refused()
        for why in REFUSAL_WORDS:
            yield f'{names.SENDS_REFUSED.name}{{cause="{why}"}} {int(why == refusal)}\n'
        yield f"{_heading(names.LOG_BYTES)}{names.LOG_BYTES.name} {counters.log_bytes()}\n"
        failed = int(counters.checkpoint_failed)
        yield f"{_heading(names.CHECKPOINT_FAILED)}{names.CHECKPOINT_FAILED.name} {failed}\n"
        for family, value in zip(
            (names.FILE_BYTES, names.FILE_FREE_BYTES, names.GIVEN_BACK_BYTES),
            counters.file_space(),
            strict=True,
        ):
            yield f"{_heading(family)}{family.name} {value}\n"
        yield f"{_heading(names.STAGED_BYTES)}{names.STAGED_BYTES.name} {counters.staged_bytes()}\n"
        yield from self._quotas()
        yield f"{_heading(names.PUBLICATIONS)}{names.PUBLICATIONS.name} {counters.publications}\n"
        yield f"{_heading(names.UI_CONNECTIONS)}{names.UI_CONNECTIONS.name} {counters.ui_connections()}\n"
        yield _heading(names.UI_LOOP_SECONDS)
        for share, seconds in counters.ui_loop_seconds().items():
            yield f'{names.UI_LOOP_SECONDS.name}{{share="{share}"}} {seconds:.6f}\n'
        yield from self._budgets()
        yield _heading(names.REJECTIONS)
        for cause, count in counters.rejections.items():
            yield f'{names.REJECTIONS.name}{{cause="{cause.value}"}} {count}\n'
        yield from self._durations(names.WAIT, "wait")
        yield from self._durations(names.END_TO_END, "end_to_end")
        yield from self._durations(names.HANDLING, "handling")
        for family, histogram in self._writer_histograms:
            yield _heading(family)
            yield histogram.text()
        yield _heading(names.LAST_BACKUP)
        if counters.last_backup_at is not None:
            yield f"{names.LAST_BACKUP.name} {counters.last_backup_at / _MS_PER_SECOND}\n"
        yield f"{_heading(names.BACKUP_FAILED)}{names.BACKUP_FAILED.name} {int(counters.backup_failed)}\n"
        for family, value in zip(
            (names.HISTORY_MESSAGES, names.HISTORY_BYTES), counters.history, strict=True
        ):
            yield f"{_heading(family)}{family.name} {value}\n"
        log = counters.event_log()
        for family, value in (
            (names.EVENT_BYTES, log.bytes),
            (names.FIRST_EVENT, log.first),
            (names.LAST_EVENT, log.last),
        ):
            yield f"{_heading(family)}{family.name} {value}\n"

    def _budgets(self) -> Iterator[str]:
        budgets = self._counters.budgets()
        yield _heading(names.BUDGET_USED)
        for name, budget in budgets.items():
            yield f'{names.BUDGET_USED.name}{{budget="{name}"}} {budget.used}\n'
        yield _heading(names.BUDGET_REFUSALS)
        for name, budget in budgets.items():
            for share, count in budget.refused.items():
                yield f'{names.BUDGET_REFUSALS.name}{{budget="{name}",share="{share}"}} {count}\n'

    def _events(self) -> Iterator[str]:
        by_kind: dict[str, list[Series]] = defaultdict(list)
        for series in self._counters.series():
            by_kind[series.kind].append(series)
        for counter in COUNTERS:
            yield _heading(counter.family)
            sums: dict[str, int] = {}
            for series in by_kind[counter.kind]:
                labels = series.text
                if not labels:
                    labels = series.text = _labels(counter.labels, series)
                sums[labels] = sums.get(labels, 0) + series.count
            for labels, count in sums.items():
                yield f"{counter.name}{{{labels}}} {count}\n"

    def _by_queue(self, family: Family, values: Mapping[QueueKey, float]) -> Iterator[str]:
        yield _heading(family)
        name = family.name
        for key, value in values.items():
            yield f"{name}{{{self._labels(key)}}} {value}\n"

    def _states(self) -> Iterator[str]:
        yield _heading(names.MESSAGES)
        for key, count in self._counters.counts.items():
            start = f'{names.MESSAGES.name}{{{self._labels(key)},state="'
            for state in STATES:
                yield f'{start}{state}"}} {getattr(count, state)}\n'

    def _health(self) -> Iterator[str]:
        """Queues by label and level: one series for a queue, so that only the present level has one."""
        yield _heading(names.HEALTH)
        key = self._counters.key
        counted = Counter((key(queue), level) for queue, level in self._counters.health().items())
        for (queue_key, level), count in counted.items():
            yield f'{names.HEALTH.name}{{{self._labels(queue_key)},level="{level}"}} {count}\n'

    def _consumers(self) -> Iterator[str]:
        gauges = self._counters.consumers()
        for family, value in (
            (names.CONSUMER_LAG, "lag"),
            (names.CONSUMER_OPEN, "open_messages"),
            (names.CONSUMER_SECONDS, "seconds_since_use"),
        ):
            yield _heading(family)
            for gauge in gauges:
                labels = f'queue_name="{gauge.queue}",consumer="{gauge.name}"'
                yield f"{family.name}{{{labels}}} {getattr(gauge, value)}\n"

    def _quotas(self) -> Iterator[str]:
        quotas = self._counters.quotas()
        for family, value in (
            (names.QUOTA_USED, "used"),
            (names.QUOTA_LIMIT, "limit"),
            (names.QUOTA_KEY_USED, "key_used"),
            (names.QUOTA_KEY_LIMIT, "key_limit"),
        ):
            yield _heading(family)
            for quota in quotas:
                yield f'{family.name}{{quota="{quota.name}"}} {getattr(quota, value)}\n'

    def _durations(self, family: Family, kind: str) -> Iterator[str]:
        yield _heading(family)
        for key, histogram in self._counters.durations.items():
            if key[0] != kind:
                continue
            written = self._message_histograms.get(key)
            if written is None:
                written = _HistogramText(family.name, self._labels(key[1]), histogram, _MS_PER_SECOND)
                self._message_histograms[key] = written
            yield written.text()

    def _labels(self, key: QueueKey) -> str:
        labels = self._queue_labels.get(key)
        if labels is None:
            labels = self._queue_labels[key] = _of_queue(*key)
        return labels


class _HistogramText:
    """The lines of one histogram, cached until it changes. divisor: of its unit to that of the series."""

    def __init__(self, name: str, labels: str, histogram: Histogram, divisor: int) -> None:
        separator = "," if labels else ""
        bounds = [f"{bound / divisor:g}" for bound in histogram.bounds]
        braces = f"{{{labels}}}" if labels else ""
        self._starts = [f'{name}_bucket{{{labels}{separator}le="{bound}"}} ' for bound in (*bounds, "+Inf")]
        self._starts += [f"{name}_sum{braces} ", f"{name}_count{braces} "]
        self._histogram = histogram
        self._divisor = divisor
        self._count = -1
        self._text = ""

    def text(self) -> str:
        buckets = list(accumulate(self._histogram.counts))
        count = buckets[-1]
        if count != self._count:
            self._count = count
            values = (*buckets, self._histogram.sum / self._divisor, count)
            self._text = "".join(
                f"{start}{value}\n" for start, value in zip(self._starts, values, strict=True)
            )
        return self._text


def _heading(family: Family) -> str:
    return f"# HELP {family.name} {family.meaning}\n# TYPE {family.name} {family.type}\n"


def _of_queue(queue: str, is_dlq: bool) -> str:
    return f'queue_name="{queue}",queue_type="{"dlq" if is_dlq else "regular"}"'


def _labels(wanted: tuple[str, ...], series: Series) -> str:
    if wanted == QUEUE_LABELS:
        return _of_queue(series.queue, series.is_dlq)
    values = {"queue_name": series.queue, "reason": series.reason}
    return ",".join(f'{name}="{values[name]}"' for name in wanted)
