"""The options that say when a schedule runs: they follow from its members."""

from collections.abc import Callable

from forq_trio.cli.declared_options import option_of
from forq_trio.cli.options import CommandT, all_options
from forq_trio.model.declared import members_declared
from forq_trio.model.schedules.types import NewSchedule, ScheduleOption

_OPTIONS = members_declared(NewSchedule, ScheduleOption)


def schedule_options(*names: str) -> Callable[[CommandT], CommandT]:
    """An option for each of these members; its value is None if it is not given."""
    return all_options(*(option_of(_OPTIONS[name], _OPTIONS[name].default) for name in names))
