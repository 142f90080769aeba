"""Endpoints for backups of the running server."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint, declare_topic
from forq_trio.model.server import backups as bodies

declare_topic(
    "Operation",
    "Health, metrics (docs/metrics.md), backups, and compaction, which gives free pages of the database "
    "file back to the disk.",
)
START_BACKUP = Endpoint(
    "POST",
    "/admin/backups",
    Scope.ADMIN,
    name="startBackup",
    tag="Operation",
    summary="Begin a backup",
    description="It goes on in the server, which does all else meanwhile. One at a time: 409 "
    "`conflict.backup_running`. 409 `conflict.in_memory`: the server stores nothing on disk. The server also makes "
    "backups by itself, every FORQ_BACKUP_EVERY_HOURS; docs/reliability.md#backups says what one contains. "
    "The secret is needed, or a token with the scope for all queues.",
    takes_nothing=True,
    answers=(Answer(202, "The backup that has begun.", bodies.BackupInfo),),
    errors=(errors.BackupRunning, errors.BackupImpossible, errors.FeatureUnavailable, errors.Stopping),
)
SHOW_BACKUPS = Endpoint(
    "GET",
    "/admin/backups",
    Scope.ADMIN,
    name="showBackups",
    tag="Operation",
    summary="The latest backup, and the files that are there",
    description="The secret is needed, or a token with the scope for all queues.",
    answers=(Answer(200, "The backups.", bodies.Backups),),
    errors=(errors.BackupImpossible, errors.FeatureUnavailable, errors.StorageUnavailable),
)
