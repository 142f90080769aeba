"""Endpoints for backups of the running server."""

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint
from forq_trio.model.server import backups as bodies

START_BACKUP = Endpoint(
    "POST",
    "/admin/backups",
    Scope.ADMIN,
    name="startBackup",
    tag="Operation",
    summary="Begin a backup",
    description="It goes on in the server, beside everything else; one at a time.",
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
    answers=(Answer(200, "The backups.", bodies.Backups),),
    errors=(errors.BackupImpossible, errors.FeatureUnavailable, errors.StorageUnavailable),
)
