"""The counters in Prometheus' text format.

With 1,000 queues there are tens of thousands of lines, and a general-purpose encoder would block the event loop for too
long. So label texts are made once, and the text of a histogram only when it has changed. Queue names need no escaping
(they are letters, digits, dots, dashes and underscores).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from forq_trio.model import limits
from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.telemetry import metric_names as names
from forq_trio.telemetry.activity import Series
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.gauges import Gauges
from forq_trio.telemetry.histogram import Histogram
from forq_trio.telemetry.metric_names import COUNTERS, QUEUE_LABELS, STATES, Family
from forq_trio.telemetry.queue_counters import QueueKey

_MS_PER_SECOND = 1_000


class Exposition:
    """Writes the text of the same counters and gauges at every scrape, and caches its parts."""

    def __init__(self, counters: Counters, gauges: Gauges) -> None:
        self._counters = counters
        self._gauges = gauges
        self._queue_labels: dict[QueueKey, str] = {}
        self._message_histograms: dict[tuple[str, QueueKey], _HistogramText] = {}
        of_the_writer = (
            (names.COMMIT_CALLS, counters.commits.calls.all),
            (names.COMMIT_SECONDS, counters.commits.seconds.all),
            (names.GATE_SECONDS, counters.gate_seconds.all),
            (names.LAG_SECONDS, counters.lag_seconds.all),
            (names.CHECKPOINT_SECONDS, counters.checkpoint_seconds),
            (names.CHECKPOINT_PAUSE_SECONDS, counters.checkpoint_pause_seconds),
        )
        self._writer_histograms = [
            (family, _HistogramText(family.name, "", histogram, 1)) for family, histogram in of_the_writer
        ]
        lateness = _HistogramText(names.RUN_LATENESS.name, "", counters.runs.late_ms, _MS_PER_SECOND)
        self._writer_histograms.append((names.RUN_LATENESS, lateness))

    def text(self) -> str:
        """All families of `metric_names`, in their order."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        counters, gauges = self._counters, self._gauges
        by_kind: dict[str, list[Series]] = defaultdict(list)
        for series in counters.queues.series():
            by_kind[series.kind].append(series)
        for counter in COUNTERS:
            yield from _counted(counter, by_kind[counter.kind])
        yield from self._by_queue(names.DEPTH, counters.depths)
        yield from self._states()
        yield from self._by_queue(names.BYTES, {key: count.bytes for key, count in counters.counts.items()})
        yield from self._by_queue(names.DEAD_LETTERS, gauges.dead_letters())
        yield from self._by_queue(names.OLDEST_AGE, gauges.oldest_seconds())
        yield from self._by_queue(names.WAITING, counters.waiting(gauges.parked))
        yield from self._health()
        yield from self._workers()
        yield from self._process()
        yield from self._database()
        yield from self._consumers()
        yield _one(names.INBOX, gauges.inbox_calls())
        refusal = gauges.sends_refused()
        yield from _each(names.SENDS_REFUSED, [(why, int(why == refusal)) for why in REFUSAL_WORDS])
        yield _one(names.LOG_BYTES, gauges.log_bytes())
        yield _one(names.CHECKPOINT_FAILED, int(gauges.checkpoint_failed()))
        space = gauges.file_space()
        yield _one(names.FILE_BYTES, space.file_bytes)
        yield _one(names.FILE_FREE_BYTES, space.free_bytes)
        yield _one(names.GIVEN_BACK_BYTES, space.given_back_bytes)
        yield _one(names.STAGED_BYTES, gauges.staged_bytes())
        quotas = gauges.quotas()
        yield from _each(names.QUOTA_USED, [(quota.name, quota.used) for quota in quotas])
        yield from _each(names.QUOTA_LIMIT, [(quota.name, quota.limit) for quota in quotas])
        yield from _each(names.QUOTA_KEY_USED, [(quota.name, quota.key_used) for quota in quotas])
        yield from _each(names.QUOTA_KEY_LIMIT, [(quota.name, quota.key_limit) for quota in quotas])
        yield from _counted(names.OFFERS, by_kind[names.OFFERS.kind])
        yield _one(names.PUBLICATIONS, counters.publications)
        yield _one(names.SENT_SET_ASIDE, counters.sent_set_aside)
        yield _one(names.SET_ASIDE, gauges.set_aside())
        yield from _each(names.RUNS, counters.runs.by_result.items())
        yield _one(names.UI_CONNECTIONS, gauges.ui_connections())
        yield from _each(
            names.UI_LOOP_SECONDS,
            [(share, f"{seconds:.6f}") for share, seconds in gauges.ui_loop_seconds().items()],
        )
        yield from self._budgets()
        yield from _each(names.REJECTIONS, counters.rejections.items())
        yield from self._durations(names.WAIT, "wait")
        yield from self._durations(names.END_TO_END, "end_to_end")
        yield from self._durations(names.HANDLING, "handling")
        for family, histogram in self._writer_histograms:
            yield _heading(family)
            yield histogram.text()
        yield _heading(names.LAST_BACKUP)
        last_backup_at = gauges.last_backup_at()
        if last_backup_at is not None:
            yield f"{names.LAST_BACKUP.name} {last_backup_at / _MS_PER_SECOND}\n"
        yield _one(names.BACKUP_FAILED, int(gauges.backup_failed()))
        history = gauges.history()
        yield _one(names.HISTORY_MESSAGES, history.messages)
        yield _one(names.HISTORY_BYTES, history.bytes)
        log = gauges.event_log()
        yield _one(names.EVENT_BYTES, log.bytes)
        yield _one(names.FIRST_EVENT, log.first)
        yield _one(names.LAST_EVENT, log.last)

    def _budgets(self) -> Iterator[str]:
        budgets = self._gauges.budgets()
        yield from _each(names.BUDGET_USED, [(name, budget.used) for name, budget in budgets.items()])
        yield _heading(names.BUDGET_REFUSALS)
        for name, budget in budgets.items():
            for share, count in budget.refused.items():
                yield f'{names.BUDGET_REFUSALS.name}{{budget="{name}",share="{share}"}} {count}\n'

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
        """Queues by label and level. A queue has one series only, that of its current level."""
        yield _heading(names.HEALTH)
        key = self._counters.queues.key
        counted = Counter((key(queue), level) for queue, level in self._gauges.health().items())
        for (queue_key, level), count in counted.items():
            yield f'{names.HEALTH.name}{{{self._labels(queue_key)},level="{level}"}} {count}\n'

    def _workers(self) -> Iterator[str]:
        workers = self._gauges.workers()
        yield from _each(names.WORKERS, workers.states.items())
        slots: Counter[QueueKey] = Counter()
        busy: Counter[QueueKey] = Counter()
        for queue, (of_queue, busy_of_queue) in workers.slots.items():
            key = self._counters.queues.key(queue)
            slots[key] += of_queue
            busy[key] += busy_of_queue
        yield from self._by_queue(names.WORKER_SLOTS, slots)
        yield from self._by_queue(names.WORKER_SLOTS_BUSY, busy)

    def _process(self) -> Iterator[str]:
        yield from _each(names.PROCESSES, self._gauges.processes().items())
        yield _heading(names.PROCESS)
        report = self._gauges.process()
        if report is not None:
            labels = ",".join(f'{label}="{getattr(report, label)}"' for label in names.PROCESS.labels)
            yield f"{names.PROCESS.name}{{{labels}}} 1\n"

    def _database(self) -> Iterator[str]:
        state = self._gauges.database()
        if state is None:
            yield from map(_heading, names.DATABASE)
            return
        reading = state.reading
        held_ms = 0 if state.snapshot is None else state.snapshot.held_ms
        connections = {
            "ours": reading.connections_ours,
            "all": reading.connections,
            "limit": reading.connections_max,
        }
        yield _one(names.DATABASE_SNAPSHOT, held_ms / _MS_PER_SECOND)
        yield _one(names.DATABASE_DEAD_ROWS, reading.dead_rows)
        yield from _each(names.DATABASE_CONNECTIONS, connections.items())
        yield _one(names.DATABASE_BYTES, reading.bytes)

    def _consumers(self) -> Iterator[str]:
        consumers = self._gauges.consumers()
        for family, value in (
            (names.CONSUMER_LAG, "lag"),
            (names.CONSUMER_OPEN, "open_messages"),
            (names.CONSUMER_SECONDS, "seconds_since_use"),
        ):
            yield _heading(family)
            for gauge in consumers:
                labels = f'queue_name="{gauge.queue}",consumer="{gauge.name}"'
                yield f"{family.name}{{{labels}}} {getattr(gauge, value)}\n"

    def _durations(self, family: Family, kind: str) -> Iterator[str]:
        yield _heading(family)
        durations = self._counters.durations.histograms
        if len(self._message_histograms) > len(durations):
            self._message_histograms = {
                key: each for key, each in self._message_histograms.items() if key in durations
            }
        for key, histogram in durations.items():
            if key[0] != kind:
                continue
            written = self._message_histograms.get(key)
            if written is None or written.histogram is not histogram:
                written = _HistogramText(family.name, self._labels(key[1]), histogram, _MS_PER_SECOND)
                self._message_histograms[key] = written
            yield written.text()

    def _labels(self, key: QueueKey) -> str:
        labels = self._queue_labels.get(key)
        if labels is None:
            if len(self._queue_labels) > 2 * limits.METRIC_QUEUES_MAX:  # most are of queues that are gone
                self._queue_labels.clear()
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


def _counted(counter: Family, counted: Sequence[Series]) -> Iterator[str]:
    """A counter of events."""
    yield _heading(counter)
    sums: dict[str, int] = {}
    for series in counted:
        labels = series.text
        if not labels:
            labels = series.text = _labels(counter.labels, series)
        sums[labels] = sums.get(labels, 0) + series.shown
    for labels, count in sums.items():
        yield f"{counter.name}{{{labels}}} {count}\n"


def _heading(family: Family) -> str:
    return f"# HELP {family.name} {family.meaning}\n# TYPE {family.name} {family.type}\n"


def _one(family: Family, value: float) -> str:
    """A family with one series, which has no labels."""
    return f"{_heading(family)}{family.name} {value}\n"


def _each(family: Family, values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """A family with a series for each value of its one label."""
    yield _heading(family)
    (label,) = family.labels
    for name, value in values:
        yield f'{family.name}{{{label}="{name}"}} {value}\n'


def _of_queue(queue: str, is_dlq: bool) -> str:
    return f'queue_name="{queue}",queue_type="{"dlq" if is_dlq else "regular"}"'


def _labels(wanted: tuple[str, ...], series: Series) -> str:
    if wanted == QUEUE_LABELS:
        return _of_queue(series.queue, series.is_dlq)
    values = {"queue_name": series.queue, "reason": series.reason}
    return ",".join(f'{name}="{values[name]}"' for name in wanted)
