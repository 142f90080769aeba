"""Converts values of the storage into the types that callers see."""

from forq_trio.model.access.bodies import TokenInfo
from forq_trio.model.access.types import AccessToken
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo, RedriveTask
from forq_trio.model.values import seen


def changed_redrive(task: RedriveTask) -> ChangedRedrive:
    """A redrive task as the caller who changes it sees it."""
    return seen(ChangedRedrive, task)


def redrive_info(task: RedriveTask) -> RedriveInfo:
    """A redrive task without its cursor."""
    return seen(RedriveInfo, task)


def token_info(token: AccessToken, now_ms: int) -> TokenInfo:
    """A token without the digest of its text."""
    return seen(TokenInfo, token, expired=token.expired(now_ms))
