"""Schedules: the queries, and the answers that have no type of the model. The others are the model's."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.queries import Query
from forq_trio.model.schedules.types import NextRun
from forq_trio.model.values import bounded


class SchedulesQuery(Query, frozen=True, kw_only=True):
    """A page of schedules."""

    after: (
        Annotated[
            str,
            Meta(description="Only schedules whose names come after this one: `next` of the page before."),
        ]
        | None
    ) = None
    limit: Annotated[int, bounded(1, limits.SCHEDULES_PAGE_MAX, "How many schedules at most.")] = (
        limits.SCHEDULES_PAGE_DEFAULT
    )


class SaveScheduleQuery(Query, frozen=True, kw_only=True):
    """How to store a schedule."""

    only_new: Annotated[bool, Meta(description="Refuse to change a schedule that exists.")] = False


class ScheduleQuery(Query, frozen=True, kw_only=True):
    """What to show of a schedule."""

    runs: Annotated[int, bounded(0, limits.RUNS_KEPT_MAX, "How many past runs at most.")] = (
        limits.RUNS_SHOWN_DEFAULT
    )


class NextRunsQuery(Query, frozen=True, kw_only=True):
    """How many runs are wanted."""

    count: Annotated[int, bounded(1, limits.NEXT_RUNS_MAX, "How many runs at most.")] = (
        limits.NEXT_RUNS_DEFAULT
    )


class NextRuns(Struct, frozen=True):
    """Nominal times to come."""

    runs: list[NextRun]  # from now on; fewer if the timing ends
