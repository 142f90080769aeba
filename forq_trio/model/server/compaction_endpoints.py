"""Endpoints for giving free pages of the file back while the server runs."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint
from forq_trio.model.server.compaction import CompactionInfo

_NEEDS = "The secret is needed, or a token with the scope for all queues."


def _changing(
    path: str, name: str, summary: str, description: str, *more: type[errors.ForqError]
) -> Endpoint[CompactionInfo]:
    return Endpoint(
        "POST",
        path,
        Scope.ADMIN,
        name=name,
        tag="Operation",
        summary=summary,
        description=f"{description} {_NEEDS}",
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
    description=f"docs/backup.md#give-disk-space-back explains it. {_NEEDS}",
    answers=(Answer(200, "The compaction.", CompactionInfo),),
)
START_COMPACTION = _changing(
    "/admin/compaction",
    "startCompaction",
    "Give free pages of the file back to the disk, or let a paused compaction go on",
    "A running one that somebody asked for does not change; one that the server began by itself gives back all free "
    "pages from then on. It works in small steps; other calls are served between them. 409 "
    "`conflict.not_compactable` if the file does not support it.",
    errors.CompactionImpossible,
    errors.FeatureUnavailable,
    errors.Stopping,
)
PAUSE_COMPACTION = _changing(
    "/admin/compaction/pause",
    "pauseCompaction",
    "Pause the compaction until it is started again",
    "Nothing happens if none runs.",
)
STOP_COMPACTION = _changing(
    "/admin/compaction/stop", "stopCompaction", "Stop the compaction", "What it has freed stays freed."
)
