"""Values of the storage as the types that callers see."""

from msgspec.structs import asdict

from forq_trio.model.access import AccessToken
from forq_trio.model.redrives import RedriveTask
from forq_trio.model.values import seen
from forq_trio.wire.dead_letters import AppliedFilter, RedriveInfo
from forq_trio.wire.tokens import TokenInfo


def redrive_info(task: RedriveTask) -> RedriveInfo:
    """A task over dead letters, without its cursor."""
    wanted = task.wanted
    members = asdict(task)
    del members["wanted"], members["before_sequence"]
    members["action"] = task.action.value
    members["state"] = task.state.value
    members["filter"] = AppliedFilter(
        wanted.reason,
        wanted.since_ms,
        wanted.until_ms,
        wanted.attributes,
        wanted.text,
        wanted.error,
        wanted.above_sequence,
        wanted.error_like,
    )
    return RedriveInfo(**members)


def token_info(token: AccessToken, now_ms: int) -> TokenInfo:
    """A token without the digest of its text."""
    return seen(TokenInfo, token, expired=token.expired(now_ms))
