"""Endpoints for backups of the running server."""

from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.wire import backups as wire
from forq_trio.wire.endpoints.endpoint import Answer, Endpoint

START_BACKUP = Endpoint(
    "POST",
    "/admin/backups",
    Scope.ADMIN,
    name="startBackup",
    tag="Operation",
    summary="Begin a backup",
    description="It goes on in the server, beside everything else; one at a time.",
    takes_nothing=True,
    answers=(Answer(202, "The backup that has begun.", wire.BackupInfo),),
    errors=(errors.BackupRunning, errors.BackupImpossible, errors.FeatureUnavailable, errors.Stopping),
)
SHOW_BACKUPS = Endpoint(
    "GET",
    "/admin/backups",
    Scope.ADMIN,
    name="showBackups",
    tag="Operation",
    summary="The latest backup, and the files that are there",
    answers=(Answer(200, "The backups.", wire.Backups),),
    errors=(errors.BackupImpossible, errors.FeatureUnavailable, errors.StorageUnavailable),
)
