"""Tags and permissions of queues. They are stored; permissions judge nothing, because access tokens do."""

import re

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.checks import FORBIDDEN
from forq_trio.http.sqs_api.details import DetailChanges, details_of
from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, OVER_LIMIT, SqsError, invalid, missing
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.shapes import (
    AddPermissionRequest,
    Nothing,
    QueueUrlRequest,
    RemovePermissionRequest,
    TagQueueRequest,
    TagsAnswer,
    UntagQueueRequest,
)
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.sqs.policies import POLICY, Statement, labels_of

_KEY_LENGTH_MAX, _VALUE_LENGTH_MAX = 128, 256
_LABEL_LENGTH_MAX = 80
_LABEL = re.compile(rf"[A-Za-z0-9_-]{{1,{_LABEL_LENGTH_MAX}}}")
_ACTIONS = (
    "*",
    "SendMessage",
    "ReceiveMessage",
    "DeleteMessage",
    "ChangeMessageVisibility",
    "GetQueueAttributes",
    "GetQueueUrl",
)
_ACTIONS_MAX = 7


class SqsTags:
    """The operations on what is only stored with a queue."""

    def __init__(self, broker: Broker, changes: DetailChanges) -> None:
        self._broker = broker
        self._changes = changes

    async def tag(self, caller: SqsCaller, asked: TagQueueRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        if not asked.tags:
            raise missing("Tags")
        checked_tags(details_of(self._broker, queue).tags | asked.tags, queue)
        await self._changes.store(queue, tags=asked.tags)
        return Nothing()

    async def untag(self, caller: SqsCaller, asked: UntagQueueRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        if not asked.tag_keys:
            raise _invalid_key()
        await self._changes.store(queue, untagged=asked.tag_keys)
        return Nothing()

    async def tags(self, caller: SqsCaller, asked: QueueUrlRequest) -> TagsAnswer:
        await trio.lowlevel.checkpoint()
        queue = caller.queue(self._broker, asked.queue_url, *ANY_SCOPE)
        return TagsAnswer(details_of(self._broker, queue).tags)

    async def add_permission(self, caller: SqsCaller, asked: AddPermissionRequest) -> Nothing:
        """Add a statement to the policy of the queue."""
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        label, accounts, actions = asked.label, asked.accounts, asked.actions
        if not label:
            raise missing("Label")
        if _LABEL.fullmatch(label) is None:
            raise invalid(
                "Label", label, f"Can have up to {_LABEL_LENGTH_MAX} alphanumeric characters, - and _."
            )
        if not accounts:
            raise invalid("PrincipalId", "[]", "Unable to verify.")
        if not actions:
            raise missing("Actions")
        _check_actions(actions)
        if label in self._labels(queue):
            raise invalid("Label", label, "Already exists.")
        await self._changes.store(queue, statements={label: _statement(queue, label, accounts, actions)})
        return Nothing()

    async def remove_permission(self, caller: SqsCaller, asked: RemovePermissionRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        if not asked.label:
            raise missing("Label")
        if asked.label not in self._labels(queue):
            raise invalid("Label", asked.label, "can't find label on existing policy.")
        await self._changes.store(queue, statements={asked.label: None})
        return Nothing()

    def _labels(self, queue: SqsQueue) -> set[str]:
        """The labels of the permissions of a queue."""
        return labels_of(details_of(self._broker, queue).attributes.get(POLICY, ""))


def checked_tags(tags: dict[str, str], queue: SqsQueue) -> dict[str, str]:
    """Return the tags of a queue; raise SqsError for too many, or one that is too long."""
    if len(tags) > limits.SQS_TAGS_MAX:
        raise SqsError(INVALID_PARAMETER, f"Too many tags added for queue {queue.name}.")
    for key, value in tags.items():
        if not 1 <= len(key) <= _KEY_LENGTH_MAX or FORBIDDEN.search(key):
            raise _invalid_key()
        if len(value) > _VALUE_LENGTH_MAX or FORBIDDEN.search(value):
            raise invalid(
                "TagValue", value, f"Tag values must be at most {_VALUE_LENGTH_MAX} characters in length."
            )
    return tags


def _invalid_key() -> SqsError:
    text = f"Tag keys must be between 1 and {_KEY_LENGTH_MAX} characters in length."
    return SqsError(INVALID_PARAMETER, text)


def _check_actions(actions: list[str]) -> None:
    if len(actions) > _ACTIONS_MAX:
        text = f"{len(actions)} Actions were found, maximum allowed is {_ACTIONS_MAX}."
        raise SqsError(OVER_LIMIT, text)
    for action in actions:
        if action not in _ACTIONS:
            raise invalid(
                "ActionName", f"SQS:{action}", "Only the queue owner is allowed to invoke this action."
            )


def _statement(queue: SqsQueue, label: str, accounts: list[str], actions: list[str]) -> Statement:
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    named = [f"SQS:{action}" for action in actions]
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": named[0] if len(named) == 1 else named,
        "Resource": queue.arn,
    }
