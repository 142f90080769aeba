"""Values of the broker as the types of the API."""

import msgspec

from forq_trio.broker.redrives import RedriveTask
from forq_trio.model.access import AccessToken
from forq_trio.model.messages import MessageInfo
from forq_trio.wire.dead_letters import AppliedFilter, RedriveView
from forq_trio.wire.messages import MessageView, ReceivedMessage
from forq_trio.wire.tokens import TokenView


def message_view(info: MessageInfo) -> MessageView:
    """A stored message."""
    return MessageView(**{**msgspec.structs.asdict(info), "status": info.status.name.lower()})


def peeked_message(info: MessageInfo) -> ReceivedMessage:
    """A stored message as a received one, without receipt and leaseUntil."""
    return ReceivedMessage(
        info.id,
        info.content,
        info.attempts,
        info.sequence,
        info.received_at,
        info.priority,
        info.first_received_at,
        info.attributes,
        info.group,
    )


def redrive_view(task: RedriveTask) -> RedriveView:
    """A redrive task, with its progress."""
    wanted = task.wanted
    members = msgspec.structs.asdict(task)
    del members["wanted"]
    members["state"] = task.state.value
    members["filter"] = AppliedFilter(
        wanted.reason, wanted.since_ms, wanted.until_ms, wanted.attributes, wanted.text
    )
    return RedriveView(**members)


def token_view(token: AccessToken, now_ms: int) -> TokenView:
    """A token without the digest of its text."""
    return TokenView(
        token.name,
        token.scopes,
        token.queues,
        token.created_at,
        token.expires_at,
        token.last_used_at,
        token.expired(now_ms),
    )
