"""The attributes of queues: what each may be, and where it is stored.

Some are settings of the queue (`VisibilityTimeout` is its lease), so that every dialect sees the same. The others are
stored as they were set. Numbers are the ranges of the API reference.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from forq_trio.http.sqs_api.checks import FORBIDDEN
from forq_trio.http.sqs_api.errors import (
    INVALID_ATTRIBUTE_NAME,
    INVALID_ATTRIBUTE_VALUE,
    SqsError,
    UnknownQueue,
    invalid,
    shown,
)
from forq_trio.http.sqs_api.names import SqsAccount, SqsQueue, queue_of_arn
from forq_trio.model import limits
from forq_trio.model.json_text import loads
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import NO_DEAD_LETTERS, Expiry, Order
from forq_trio.model.queues.settings import QueueRules, SettingsChange
from forq_trio.model.sqs.policies import POLICY
from forq_trio.model.sqs.types import SqsDetails

ALL = "All"
_DEFAULTS_OF_FIFO = {
    "ContentBasedDeduplication": "false",
    "DeduplicationScope": "queue",
    "FifoThroughputLimit": "perQueue",
}
_COUNT = re.compile(r"[0-9]{1,6}")
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class _Number(NamedTuple):
    """An attribute that is a whole number."""

    low: int
    high: int
    default: int | None = None  # of a queue for which none was set; None: it is not shown then


_NUMBERS = {
    "DelaySeconds": _Number(0, limits.SQS_DELAY_SECONDS_MAX, 0),
    "MaximumMessageSize": _Number(1_024, limits.SQS_MESSAGE_BYTES_MAX, limits.SQS_MESSAGE_BYTES_MAX),
    "MessageRetentionPeriod": _Number(60, 1_209_600, 345_600),
    "ReceiveMessageWaitTimeSeconds": _Number(0, limits.SQS_WAIT_SECONDS_MAX, 0),
    "VisibilityTimeout": _Number(0, limits.SQS_VISIBILITY_SECONDS_MAX, 30),
    "KmsDataKeyReusePeriodSeconds": _Number(60, 86_400),
}
_IN_SETTINGS = {
    "DelaySeconds": "delay_ms",
    "MessageRetentionPeriod": "ttl_ms",
    "VisibilityTimeout": "lease_ms",
}
_WORDS = {
    "FifoQueue": ("true", "false"),
    "ContentBasedDeduplication": ("true", "false"),
    "DeduplicationScope": ("queue", "messageGroup"),
    "FifoThroughputLimit": ("perQueue", "perMessageGroupId"),
    "SqsManagedSseEnabled": ("true", "false"),
}
_JSON = (POLICY, "RedrivePolicy", "RedriveAllowPolicy")
SETTABLE = (*_NUMBERS, *_WORDS, *_JSON, "KmsMasterKeyId")
READABLE = (*SETTABLE, *COUNTS, "QueueArn", "CreatedTimestamp", "LastModifiedTimestamp")


class AttributeChange(NamedTuple):
    """What attributes change: settings of the queue, and what else SQS says of it."""

    settings: SettingsChange
    attributes: dict[str, str]  # "" removes one


def read_attributes(
    given: Mapping[str, str], queue: SqsQueue, exists: Callable[[SqsQueue], bool]
) -> AttributeChange:
    """Check attributes that a client sets. exists: whether there is a queue. Raises SqsError."""
    settings: dict[str, Any] = {}
    others: dict[str, str] = {}
    for name, value in given.items():
        if name not in SETTABLE or (name in _DEFAULTS_OF_FIFO and not queue.is_fifo):
            raise _unknown(name)
        check_text(name, value)
        if name in _NUMBERS:
            number = _number(name, value)
            if name in _IN_SETTINGS:
                settings[_IN_SETTINGS[name]] = number * limits.SECOND_MS
            else:
                others[name] = str(number)
        elif name in _WORDS:
            if value not in _WORDS[name]:
                raise _invalid(name)
            others[name] = value
        elif name == "RedrivePolicy":
            settings |= _redrive_settings(value, queue, exists)
        elif name == "RedriveAllowPolicy":
            others[name] = _allow_policy(value, queue.account)
        else:
            if name == POLICY and value:
                _json_object(name, value)
            others[name] = value
    _check_fifo(given, queue)
    return AttributeChange(SettingsChange(**settings), others)


def settings_of_new(queue: SqsQueue) -> SettingsChange:
    """The settings of a queue that is made with no attributes: those of SQS, not of the server."""
    lengths: dict[str, Any] = {
        member: (_NUMBERS[name].default or 0) * limits.SECOND_MS for name, member in _IN_SETTINGS.items()
    }
    return SettingsChange(
        **lengths,
        max_attempts=limits.MAX_ATTEMPTS_MAX,
        dead_letter_queue=NO_DEAD_LETTERS,
        order=Order.FIFO,  # whatever the end of its name
    )


def show_attributes(
    names: Iterable[str],
    queue: SqsQueue,
    rules: QueueRules,
    details: SqsDetails | None,
    counts: QueueCounts | None,
    queue_in_house: Callable[[str], SqsQueue | None],
) -> dict[str, str]:
    """The attributes with these names. counts: None for a client that may not see them; it gets none with `All`."""
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name != ALL and name not in READABLE:
            raise _unknown(name)
    found = _attributes(queue, rules, details, queue_in_house)
    if counts is not None:
        numbers = (counts.ready + counts.held, counts.processing, counts.delayed)
        found |= {name: str(number) for name, number in zip(COUNTS, numbers, strict=True)}
    return found if ALL in wanted else {name: found[name] for name in wanted if name in found}


def _attributes(
    queue: SqsQueue,
    rules: QueueRules,
    details: SqsDetails | None,
    queue_in_house: Callable[[str], SqsQueue | None],
) -> dict[str, str]:
    numbers = {name: number.default for name, number in _NUMBERS.items() if number.default is not None}
    numbers |= {name: getattr(rules, member) // limits.SECOND_MS for name, member in _IN_SETTINGS.items()}
    found = {
        "QueueArn": queue.arn,
        **{name: str(number) for name, number in numbers.items()},
        "SqsManagedSseEnabled": "true",
    }
    if queue.is_fifo:
        found |= {"FifoQueue": "true"} | _DEFAULTS_OF_FIFO
    if details is not None:
        found["CreatedTimestamp"] = str(details.created_at // limits.SECOND_MS)
        found["LastModifiedTimestamp"] = str(details.modified_at // limits.SECOND_MS)
        found |= details.attributes
    target = queue_in_house(rules.dead_letter_queue) if rules.dead_letter_queue else None
    if target is not None:
        receives = min(rules.max_attempts, limits.SQS_RECEIVES_MAX)
        found["RedrivePolicy"] = json.dumps({"deadLetterTargetArn": target.arn, "maxReceiveCount": receives})
    return found


def differing(given: Mapping[str, str], present: Mapping[str, str]) -> str | None:
    """The first attribute that has another value than the one given; None if all are equal."""
    for name, value in given.items():
        has = present.get(name, "")
        if value != has and (not value or not has or _meaning(name, value) != _meaning(name, has)):
            return name
    return None


def _meaning(name: str, text: str) -> Any:
    """What the value of an attribute says, however it is written."""
    if name in _NUMBERS:
        return int(text)
    if name not in _JSON:
        return text
    found = _json_object(name, text)
    return {key: str(value) for key, value in found.items()} if name == "RedrivePolicy" else found


def _redrive_settings(text: str, queue: SqsQueue, exists: Callable[[SqsQueue], bool]) -> dict[str, Any]:
    if not text:
        return {"dead_letter_queue": NO_DEAD_LETTERS, "max_attempts": limits.MAX_ATTEMPTS_MAX}
    policy = _json_object("RedrivePolicy", text)
    arn, receives = policy.get("deadLetterTargetArn"), policy.get("maxReceiveCount")
    if not isinstance(arn, str) or receives is None:
        raise invalid("RedrivePolicy", text, "Redrive policy does not contain mandatory attributes.")
    count = int(str(receives)) if _COUNT.fullmatch(str(receives)) else 0
    if not 1 <= count <= limits.SQS_RECEIVES_MAX:
        raise invalid(
            "RedrivePolicy",
            text,
            f"Invalid value for maxReceiveCount: {shown(receives)}, valid values are from 1 to"
            f" {limits.SQS_RECEIVES_MAX} both inclusive.",
        )
    target = queue_of_arn(arn, queue.account)
    if target is None or target.region != queue.region or not exists(target):
        unknown = invalid("RedrivePolicy", text, "Dead letter target does not exist.")
        raise UnknownQueue(unknown.shape, unknown.message)
    if target.is_fifo != queue.is_fifo:
        raise invalid("RedrivePolicy", text, "Dead-letter queue must be same type of queue as the source.")
    # Elsewhere what expires is a dead letter, too. Amazon deletes it.
    return {"dead_letter_queue": target.house_name, "max_attempts": count, "expiry": Expiry.DELETE}


def _allow_policy(text: str, account: SqsAccount) -> str:
    if not text:
        return ""
    policy = _json_object("RedriveAllowPolicy", text)
    permission, sources = policy.get("redrivePermission"), policy.get("sourceQueueArns", [])
    named = permission == "byQueue"
    arns = isinstance(sources, list) and all(
        isinstance(arn, str) and queue_of_arn(arn, account) for arn in sources
    )
    if permission not in ("allowAll", "denyAll", "byQueue") or not arns or named != bool(sources):
        raise invalid(
            "RedriveAllowPolicy",
            text,
            "Amazon SQS can't create the redrive allow policy, as it is in an unsupported format.",
        )
    most = limits.SQS_SOURCES_MAX
    if len(sources) > most:
        reason = f"Amazon SQS can't create the redrive allow policy, as it has more than {most} sources."
        raise invalid("RedriveAllowPolicy", text, reason)
    return text


def allows_redrive(target: Mapping[str, str], source: SqsQueue) -> bool:
    """Whether the allow policy among the attributes of a dead-letter queue lets `source` use it."""
    text = target.get("RedriveAllowPolicy", "")
    if not text:
        return True
    policy = json.loads(text)
    if policy["redrivePermission"] == "byQueue":
        return source.arn in policy["sourceQueueArns"]
    return bool(policy["redrivePermission"] == "allowAll")


def _check_fifo(given: Mapping[str, str], queue: SqsQueue) -> None:
    """Raise SqsError for FifoQueue=false, which no queue may have."""
    said = given.get("FifoQueue")
    if said == "false":
        raise (
            _unknown("FifoQueue")
            if not queue.is_fifo
            else _invalid("FifoQueue", "Modifying queue type is not supported.")
        )


def _number(name: str, text: str) -> int:
    number = _NUMBERS[name]
    digits = text.removeprefix("-")
    if not (
        digits.isascii() and digits.isdigit() and len(digits) <= 10 and number.low <= int(text) <= number.high
    ):
        raise _invalid(name)
    return int(text)


def check_text(name: str, text: str) -> None:
    """Raise SqsError for the value of an attribute that is too long, or that XML cannot show."""
    if len(text.encode()) > limits.SQS_ATTRIBUTE_BYTES_MAX or FORBIDDEN.search(text):
        raise _invalid(name)


def _json_object(name: str, text: str) -> dict[str, Any]:
    try:
        value = loads(text)
    except ValueError:
        raise _invalid(name) from None
    if not isinstance(value, dict):
        raise _invalid(name)
    return value


def _unknown(name: str) -> SqsError:
    return SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {shown(name)}.")


def _invalid(name: str, reason: str = "") -> SqsError:
    text = f"Invalid value for the parameter {name}."
    return SqsError(INVALID_ATTRIBUTE_VALUE, f"{text} Reason: {reason}" if reason else text)
