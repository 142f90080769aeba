"""The form for a message to send, or to offer under a key: turns typed texts into a message. Plain functions."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.durations import parse_duration
from forq_trio.model.errors import CallerError
from forq_trio.model.keys.types import Mode, Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.ui import attributes
from forq_trio.ui.sizes import parse_count

NAMES = (
    *("queue", "content", "attributes", "priority", "delay", "group", "deduplication_id"),
    *("key", "kind", "mode", "max_wait"),
)
MODES: dict[Mode, str] = {
    "createOrUpdate": "Newest wins: replace what waits",
    "createIfAbsent": "First wins: else change nothing",
    "create": "Only if there is none: else refuse",
    "debounce": "Debounce: the delay begins anew",
    "onceMore": "One more: after the one in flight",
}
"""What an offer does if its key has a pending message, in words."""
_FIELDS = {"delay_ms": "delay", "process_after": "delay", "dead_letter_queue": "", "max_wait_ms": "max_wait"}
_TEXT_LENGTH_MAX = 20_000


class TypedMessage(Struct):
    """The result of reading the form. If there are errors, it has neither a message nor an offering."""

    texts: dict[str, str]
    errors: dict[str, str]  # a sentence by the name of the field
    message: NewMessage | None = None  # to send
    offering: Offering | None = None  # what to offer, where a key was typed


def read(form: Mapping[str, str]) -> TypedMessage:
    """Read the form as a message. The content is taken as it is, but with \\n for the line ends of the textarea."""
    texts = {name: form.get(name, "")[:_TEXT_LENGTH_MAX].strip() for name in NAMES if name != "content"}
    texts["content"] = form.get("content", "").replace("\r\n", "\n")
    errors: dict[str, str] = {}

    def parsed(name: str, parse: Callable[[str], Any], default: Any) -> Any:
        try:
            return parse(texts[name]) if texts[name] else default
        except ValueError as error:
            errors[name] = str(error)
        except CallerError as error:
            errors[name] = format.sentence(error.message)
        return default

    message = NewMessage(
        texts["content"],
        priority=parsed("priority", parse_count, limits.PRIORITY_DEFAULT),
        delay_ms=parsed("delay", parse_duration, None),
        attributes=parsed("attributes", attributes.from_text, None),
        group=texts["group"] or None,
        deduplication_id=texts["deduplication_id"] or None,
    )
    max_wait_ms = parsed("max_wait", parse_duration, None)
    if not texts["key"]:
        for name in ("kind", "max_wait"):
            if texts[name]:
                errors.setdefault(name, "This is for a message with a key.")
        return TypedMessage(texts, errors) if errors else TypedMessage(texts, errors, message)
    if texts["deduplication_id"]:
        errors["deduplication_id"] = "A message with a key has none: its key does that."
    if texts["mode"] not in MODES:
        errors["mode"] = "Choose one of these."
    if errors:
        return TypedMessage(texts, errors)
    return TypedMessage(texts, errors, offering=_offering(texts, message, max_wait_ms))


def _offering(texts: Mapping[str, str], message: NewMessage, max_wait_ms: int | None) -> Offering:
    mode = next(mode for mode in MODES if mode == texts["mode"])
    return Offering(
        message.content,
        mode,
        max_wait_ms,
        key=texts["key"],
        kind=texts["kind"],
        delay_ms=message.delay_ms,
        priority=message.priority,
        attributes=message.attributes,
        group=message.group,
    )


def error_of(error: CallerError) -> tuple[str, str]:
    """The field of the form that an error is about, "" for none of them, and what it says as a sentence."""
    name = (error.field or "").partition(".")[0]
    name = _FIELDS.get(name, name)
    return name if name in NAMES else "", format.sentence(error.message)
