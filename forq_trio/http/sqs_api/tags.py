"""Tags and permissions of queues. They are stored; permissions judge nothing, because access tokens do."""

import json
import re
from typing import Any

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.attributes import check_text, read_policy
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.details import DetailChanges, details_of
from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, OVER_LIMIT, SqsError, invalid, missing
from forq_trio.http.sqs_api.messages import FORBIDDEN
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
from forq_trio.model.access.types import Scope

TAGS_MAX = 50
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
        details = details_of(self._broker, queue)
        policy = _policy(queue, details.attributes.get("Policy", ""))
        if label in map(_label, policy["Statement"]):
            raise invalid("Label", label, "Already exists.")
        policy["Statement"].append(_statement(queue, label, accounts, actions))
        text = json.dumps(policy)
        check_text("Policy", text)
        await self._changes.store(queue, attributes={"Policy": text})
        return Nothing()

    async def remove_permission(self, caller: SqsCaller, asked: RemovePermissionRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        if not asked.label:
            raise missing("Label")
        details = details_of(self._broker, queue)
        policy = _policy(queue, details.attributes.get("Policy", ""))
        left = [each for each in policy["Statement"] if _label(each) != asked.label]
        if len(left) == len(policy["Statement"]):
            raise invalid("Label", asked.label, "can't find label on existing policy.")
        text = json.dumps({**policy, "Statement": left}) if left else ""
        await self._changes.store(queue, attributes={"Policy": text})
        return Nothing()


def checked_tags(tags: dict[str, str], queue: SqsQueue) -> dict[str, str]:
    """Return the tags of a queue; raise SqsError for too many, or one that is too long."""
    if len(tags) > TAGS_MAX:
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


def _policy(queue: SqsQueue, text: str) -> dict[str, Any]:
    """The policy of a queue, with a list of statements."""
    policy = read_policy(text) if text else {"Version": "2012-10-17", "Id": f"{queue.arn}/SQSDefaultPolicy"}
    statements: Any = policy.get("Statement", [])
    return {**policy, "Statement": statements if isinstance(statements, list) else [statements]}


def _label(statement: Any) -> Any:
    """The label of a statement; None for what a client wrote instead of one."""
    return statement.get("Sid") if isinstance(statement, dict) else None


def _statement(queue: SqsQueue, label: str, accounts: list[str], actions: list[str]) -> dict[str, Any]:
    principals = [f"arn:aws:iam::{account}:root" for account in accounts]
    named = [f"SQS:{action}" for action in actions]
    return {
        "Sid": label,
        "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": named[0] if len(named) == 1 else named,
        "Resource": queue.arn,
    }
