"""Endpoints for giving free pages of the file back while the server runs."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint
from forq_trio.model.server.compaction import CompactionInfo


def _changing(path: str, name: str, summary: str, *more: type[errors.ForqError]) -> Endpoint[CompactionInfo]:
    return Endpoint(
        "POST",
        path,
        Scope.ADMIN,
        name=name,
        tag="Operation",
        summary=summary,
        takes_nothing=True,
        answers=(Answer(200, "The compaction as it is then.", CompactionInfo),),
        errors=more,
    )


SHOW_COMPACTION = Endpoint(
    "GET",
    "/admin/compaction",
    Scope.ADMIN,
    name="showCompaction",
    tag="Operation",
    summary="The compaction that runs or ended last, and how much of the file is free",
    answers=(Answer(200, "The compaction.", CompactionInfo),),
)
START_COMPACTION = _changing(
    "/admin/compaction",
    "startCompaction",
    "Give free pages of the file back to the disk, or let a paused compaction go on",
    errors.CompactionImpossible,
    errors.FeatureUnavailable,
    errors.Stopping,
)
PAUSE_COMPACTION = _changing(
    "/admin/compaction/pause", "pauseCompaction", "Pause the compaction until it is started again"
)
STOP_COMPACTION = _changing(
    "/admin/compaction/stop", "stopCompaction", "Stop the compaction; what it has freed stays freed"
)
