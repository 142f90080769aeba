"""Schedules: the answers that have no type of the model. The others are the model's."""

from msgspec import Struct

from forq_trio.model.schedules import NextRun


class NextRuns(Struct, frozen=True):
    """Nominal times to come."""

    runs: list[NextRun]
