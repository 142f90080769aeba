"""A plugin of pytest: each test belongs to a tier, a run has the tiers of its effort, and tier 1 stays cheap.

A test is in tier 1 unless it is marked `tier2` or `soak`. What a run leaves out is said at its end. In tier 1 a test
fails that takes more than CALL_SECONDS_MAX of processor time, its processes included: that says how much work it is,
whatever else the machine does. A slower processor is allowed as much more time as it takes more for a fixed piece of
work, which is measured beside each test that seems too slow: the rule is about the test, not about the machine.

A test that hangs is ended by pytest-timeout, after as long as `seconds_max` says. The process ends with it, which works
wherever it hangs: a worker of pytest-xdist is replaced, and the run goes on.
"""

import re
import resource
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import pytest

from support.effort import EFFORT, TRIALS_SECONDS_MAX, soak_seconds

CALL_SECONDS_MAX = 8.0
SECONDS_MAX = 180.0
"""How long a test of tier 1 may take, its fixtures included; whatever lasts longer hangs."""
SLOW_SECONDS_MAX = 600.0
"""The same of a test that starts Spark, or is not in tier 1."""
YARDSTICK_SECONDS = 0.1
"""How long the yardstick takes on the machine for which CALL_SECONDS_MAX was chosen."""
RUN_BY = {"tier1": "script/test", "tier2": "script/test --all", "soak": "script/soak"}

# Where tests are written down, whether or not pytest looks there.
TEST = re.compile(r"^(?:async )?def test_|^class Test|^test_\w+ = ", re.MULTILINE)

COLLECTED = pytest.StashKey[dict[str, set[Path]]]()
"""For each tier the files that have tests in it, of those that pytest was asked to look at."""

LEFT = pytest.StashKey[Counter[str]]()
SPENT = pytest.StashKey[float]()


def tier_of(item: pytest.Item) -> str:
    for tier in ("soak", "tier2"):
        if item.get_closest_marker(tier):
            return tier
    return "tier1"


def seconds_max(item: pytest.Item, tier: str) -> float:
    """After how long this test hangs. Those of tier 1 that FORQ_TEST_EFFORT lengthens are marked `many_trials`."""
    if (own := item.get_closest_marker("timeout")) is not None:
        return float(own.args[0])
    if tier == "soak":
        return soak_seconds() + SLOW_SECONDS_MAX
    if tier == "tier2" or "spark" in getattr(item, "fixturenames", ()):
        return max(SLOW_SECONDS_MAX, TRIALS_SECONDS_MAX)
    return SECONDS_MAX


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    found = [(item, tier_of(item)) for item in items]  # once: of 17,000 tests it takes a third of a second
    config.stash[COLLECTED] = {each: {item.path for item, tier in found if tier == each} for each in RUN_BY}
    config.stash[LEFT] = Counter(tier for _, tier in found if tier not in EFFORT.tiers)
    config.hook.pytest_deselected(items=[item for item, tier in found if tier not in EFFORT.tiers])
    kept = [(item, tier) for item, tier in found if tier in EFFORT.tiers]
    for item, tier in kept:
        item.add_marker(pytest.mark.timeout(seconds_max(item, tier), method="thread"), append=False)
    items[:] = [item for item, _ in kept]


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)  # of a worker of pytest-xdist
    if output is not None:
        output["left"] = dict(session.config.stash.get(LEFT, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Every worker has collected the same tests; one that died says nothing."""
    left = getattr(node, "workeroutput", {}).get("left")
    if left is not None:
        node.config.stash[LEFT] = Counter(left)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for tier, number in sorted(config.stash.get(LEFT, Counter()).items()):
        terminalreporter.write_line(f"NOT RUN: {number} tests of {tier}, which {RUN_BY[tier]} runs")


def processor_seconds() -> float:
    """What this process has used, and those of its children that have ended."""
    usages = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def yardstick() -> None:
    """A fixed piece of work."""
    sum(map(len, map(str, range(640_000))))


def slowness() -> float:
    """How many times as long as there the yardstick takes here and now; at least 1."""
    began = processor_seconds()
    yardstick()
    return max(1.0, (processor_seconds() - began) / YARDSTICK_SECONDS)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    began = processor_seconds()
    try:
        return (yield)
    finally:
        item.stash[SPENT] = processor_seconds() - began


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Iterator[pytest.TestReport | None]:
    report = yield
    spent = item.stash.get(SPENT, 0.0)
    is_bounded = call.when == "call" and report.passed and EFFORT.times is None
    if is_bounded and spent > CALL_SECONDS_MAX and spent > CALL_SECONDS_MAX * slowness():
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} took {spent:.1f} s of processor time; in tier 1 a test may take {CALL_SECONDS_MAX:g} s:"
            " let it try less (tests/support/effort.py), or mark it tier2"
        )
    return report


def files_in_no_tier(root: Path, collected: Set[Path], asked: Sequence[Path]) -> list[str]:
    """Files with tests below `asked` of which pytest collected none, so that no effort would ever run them."""
    sources = {path for place in asked for path in ([place] if place.is_file() else place.rglob("*.py"))}
    return [
        str(path.relative_to(root))
        for path in sorted(sources)
        if path not in collected and TEST.search(path.read_text(encoding="utf-8"))
    ]
