"""Server processes on one database."""

from typing import Annotated

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.model.values import up_to


class ProcessList(Struct, frozen=True):
    """The processes that are known, silent ones too."""

    processes: Annotated[list[ProcessInfo], up_to(limits.PROCESSES_MAX, "Oldest start first.")]
