"""The form of a message to send: what was typed as a message. Plain functions."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.durations import parse_duration
from forq_trio.model.errors import CallerError
from forq_trio.model.messages import NewMessage
from forq_trio.model.values import python_name
from forq_trio.ui import attributes
from forq_trio.ui.sizes import parse_count

NAMES = ("queue", "content", "attributes", "priority", "delay", "group", "deduplication_id")
_FIELDS = {"delay_ms": "delay", "process_after": "delay", "dead_letter_queue": ""}
_TEXT_LENGTH_MAX = 20_000


class Read(Struct):
    """What was typed. errors: a sentence by the name of the field; message: None where there are errors."""

    texts: dict[str, str]
    errors: dict[str, str]
    message: NewMessage | None


def read(form: Mapping[str, str]) -> Read:
    """The form as a message. The content is taken as it is, with the line ends of the textarea as \\n."""
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
    return Read(texts, errors, None if errors else message)


def error_of(error: CallerError) -> tuple[str, str]:
    """The field of the form that an error is about, "" for none of them, and what it says as a sentence."""
    name = python_name((error.field or "").partition(".")[0])
    name = _FIELDS.get(name, name)
    return name if name in NAMES else "", format.sentence(error.message)
