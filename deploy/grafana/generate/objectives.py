"""The objectives of deploy/prometheus/rules/objectives.yml as the dashboards have them; a test compares the numbers."""

from typing import NamedTuple

PERIOD_DAYS = 30
FAST = 14.4
"""An alert is critical when the budget burns so many times as fast as it may, over FAST_WINDOW."""
FAST_WINDOW = "1h"
TOO_OLD_SECONDS = 300


class Objective(NamedTuple):
    """What may go wrong, and how often."""

    name: str
    alert: str
    allowed: float  # the share of errors, over PERIOD_DAYS
    bad: str  # the share of errors in a {window}; of the worst queue. {at}: a selector without its braces

    def used(self, at: str, window: str) -> str:
        """How many times as fast as it may the budget burns over a window; over PERIOD_DAYS, the share that is used."""
        return f"({self.bad.format(at=at, window=window)}) / {self.allowed:g}"


SENDS = Objective(
    "Sends answered",
    "ForqSendsNotAnswered",
    0.001,
    "max(avg_over_time(forq:sends_unanswered:rate5m{{{at}}}[{window}])"
    " / clamp_min(avg_over_time(forq:sends:rate5m{{{at}}}[{window}]), 1e-9))",
)
OLDEST = Objective(
    "Oldest message",
    "ForqMessagesTooOld",
    0.01,
    "max(avg_over_time(forq:queue_too_old:bool{{{at}}}[{window}]))",
)
DIED = Objective(
    "Dead letters",
    "ForqMessagesDie",
    0.01,
    "max(avg_over_time(forq:queue_dead:rate5m{{{at}}}[{window}])"
    " / clamp_min(avg_over_time(forq:queue_ended:rate5m{{{at}}}[{window}]), 1e-9))",
)
OBJECTIVES = (SENDS, OLDEST, DIED)
