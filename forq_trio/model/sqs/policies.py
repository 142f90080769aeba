"""The policy of a queue: a document of IAM. It is stored and judges nothing, because access tokens do."""

import json
from collections.abc import Mapping
from typing import Any

from forq_trio.model import limits
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.json_text import loads

POLICY = "Policy"
"""The attribute that has it."""

Statement = dict[str, Any]


def statements_of(policy: Mapping[str, Any]) -> list[Any]:
    """The statements of a policy. One alone need not be in a list."""
    found: Any = policy.get("Statement", [])
    return found if isinstance(found, list) else [found]


def labels_of(text: str) -> set[str]:
    """The labels of the statements of a policy in JSON, "" for none."""
    found = map(_label_of, statements_of(loads(text)) if text else ())
    return {label for label in found if label is not None}


def changed_policy(text: str, statements: Mapping[str, Statement | None], policy_id: str) -> str:
    """A policy in JSON after a change; "" once it has no statement.

    text: "" for none. statements: by their labels; None removes one. policy_id: of a new policy. Raises InvalidSetting.
    """
    policy = loads(text) if text else {"Version": "2012-10-17", "Id": policy_id}
    left = [each for each in statements_of(policy) if _label_of(each) not in statements]
    left += [each for each in statements.values() if each is not None]
    changed = json.dumps({**policy, "Statement": left}) if left else ""
    if len(changed) > limits.SQS_ATTRIBUTE_BYTES_MAX:
        raise InvalidSetting(f"Invalid value for the parameter {POLICY}.")
    return changed


def _label_of(statement: Any) -> str | None:
    """The label of a statement; None for what a client wrote instead of one."""
    label = statement.get("Sid") if isinstance(statement, dict) else None
    return label if isinstance(label, str) else None
