"""Is it flat? The last quarter of a soak against its second one, series by series.

The first quarter is for warming up: caches fill, the log and the file reach their size. `RULES` says what is compared,
and which differences are allowed; one below `slack` is ignored. Only growth fails (for the rate of requests: a fall,
because with a fading load everything else would look flat).

Latency depends on the machine as much as on the server, and a virtual machine changes its pace by far more than 5 %
from one minute to the next. So a yardstick runs all the time beside the load: the same kind of request to a loop that
does nothing but one fdatasync of 4 KiB. Latency that grew no more than the yardstick's, within the same 5 %, is flat.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.soak.record import Columns
from forq_trio.model import limits

GROWTH_MAX = 0.05
MIB = 2**20
# While a checkpoint ends, commits go on; the log is cut to its limit when it starts over.
LOG_MIB_MAX = 1.25 * limits.LOG_BYTES_KEPT_MAX / MIB


@dataclass(frozen=True)
class Rule:
    """How one series is judged.

    figure: of a quarter's values, named in words by `how`. slack: a difference of no more than that, in the unit of
    the series, is none. bound: what no value of the last quarter may exceed. beside: a series whose growth excuses
    this one's. falls: it is a fall that fails.
    """

    series: str
    about: str
    figure: Callable[[Sequence[float]], float]
    how: str
    slack: float = 0.0
    bound: float | None = None
    beside: str | None = None
    falls: bool = False


RULES = (
    Rule("rss_mib", "memory (RSS), MiB", statistics.fmean, "mean", slack=1.0),
    Rule("file_descriptors", "file descriptors", max, "greatest", slack=2),
    Rule("log_mib", "write-ahead log, MiB", statistics.fmean, "mean", slack=1.0, bound=LOG_MIB_MAX),
    Rule("database_mib", "database file, MiB", statistics.fmean, "mean", slack=1.0),
    Rule(
        "p50_ms", "latency (p50 of each second), ms", statistics.median, "median", beside="yardstick_p50_ms"
    ),
    Rule("stored", "messages stored", statistics.fmean, "mean", slack=200),
    Rule("requests_per_second", "requests a second", statistics.fmean, "mean", falls=True),
)


@dataclass(frozen=True)
class Judgement:
    """The result of a rule. second, last: the figures of the two quarters.

    growth: from one to the other, 0.05 = 5 %; None from nothing to something. per_hour: the slope of a line through the
    second half. why: in words, what fails or what excuses.
    """

    series: str
    about: str
    how: str
    second: float
    last: float
    growth: float | None
    per_hour: float
    flat: bool
    why: str = ""


def judge(columns: Columns) -> list[Judgement]:
    """All rules, and that there were no errors. Raises ValueError for a soak of less than four seconds."""
    return [*(_judge(rule, columns) for rule in RULES), _judge_errors(columns["errors"])]


def _quarters(values: Sequence[float | None]) -> tuple[list[float], list[float]]:
    """The known values of the second and of the last quarter."""
    if len(values) < 4:
        raise ValueError("a soak of less than four seconds has no quarters")
    quarter = len(values) // 4
    parts = values[quarter : 2 * quarter], values[-quarter:]
    second, last = ([value for value in part if value is not None] for part in parts)
    return second, last


def _judge(rule: Rule, columns: Columns) -> Judgement:
    quarters = _quarters(columns[rule.series])
    if not all(quarters):
        return Judgement(rule.series, rule.about, rule.how, 0, 0, None, 0, False, "nothing was measured")
    second, last = (rule.figure(quarter) for quarter in quarters)
    per_hour = _slope(columns[rule.series]) * 3_600
    growth = _growth(second, last)
    flat, why = _compare(rule, second, last, columns)
    if rule.bound is not None and max(quarters[1]) > rule.bound:
        flat, why = False, f"reached {max(quarters[1]):.4g}, more than {rule.bound:.4g}"
    return Judgement(rule.series, rule.about, rule.how, second, last, growth, per_hour, flat, why)


def _compare(rule: Rule, second: float, last: float, columns: Columns) -> tuple[bool, str]:
    """Whether the figures of two quarters are as good as equal; if not, or only by an excuse, why."""
    earlier, later = (last, second) if rule.falls else (second, last)
    if later <= earlier * (1 + GROWTH_MAX) or later - earlier <= rule.slack:
        return True, ""
    excuse = _excuse(rule, later / earlier, columns) if rule.beside and earlier else ""
    return bool(excuse), excuse or f"{'fell' if rule.falls else 'grew'} from {second:.4g} to {last:.4g}"


def _excuse(rule: Rule, ratio: float, columns: Columns) -> str:
    """The machine itself became slower by as much; "" if it did not."""
    quarters = _quarters(columns[rule.beside or ""])
    if not all(quarters):
        return ""
    second, last = (rule.figure(quarter) for quarter in quarters)
    if ratio > last / second * (1 + GROWTH_MAX):
        return ""
    return f"the machine became slower: the yardstick went from {second:.4g} to {last:.4g}"


def _judge_errors(values: Sequence[float | None]) -> Judgement:
    second, last = (sum(quarter) for quarter in _quarters(values))
    total = sum(value or 0 for value in values)
    why = f"{total:g} in all" if total else ""
    return Judgement("errors", "errors", "sum", second, last, _growth(second, last), 0.0, not total, why)


def _growth(second: float, last: float) -> float | None:
    if second == last:
        return 0.0
    return last / second - 1 if second else None


def _slope(values: Sequence[float | None]) -> float:
    """Per second, of the line that fits the second half best."""
    half = [(at, value) for at, value in enumerate(values) if value is not None and at >= len(values) // 2]
    if len(half) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*half, strict=True)).slope
