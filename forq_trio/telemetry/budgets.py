"""The families of budgets (model/budget.py), which the writer and each server have."""

from collections.abc import Iterator, Mapping

from forq_trio.model.budget import Budget
from forq_trio.telemetry.families import Family, by_label, by_labels, counter, gauge


def budget_families(budgets: Mapping[str, Budget]) -> Iterator[Family]:
    """What /metrics tells of these, by their names."""
    yield gauge(
        "forq_budget_used",
        "How much of what all clients share is in use, now.",
        by_label("budget", {name: budget.used for name, budget in budgets.items()}),
    )
    yield counter(
        "forq_budget_refusals_total",
        "Refusals because the whole or somebody's share of it was used up.",
        by_labels(
            ("budget", "share"),
            {
                (name, share): count
                for name, budget in budgets.items()
                for share, count in budget.refused.items()
            },
        ),
    )
