"""The filter of the workbench, which the URL contains: as a filter of the broker, as chips, and in words."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from forq_trio.drawing import format
from forq_trio.drawing.unseen import visible
from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import AppliedFilter, MessageFilter
from forq_trio.model.messages.types import REASON_EXPIRED, REASON_MAX_ATTEMPTS, REASON_OVERFLOW

AGES: Mapping[str, tuple[int, str]] = {
    "10m": (10 * 60_000, "10 min"),
    "1h": (limits.HOUR_MS, "1 h"),
    "24h": (limits.DAY_MS, "24 h"),
    "7d": (7 * limits.DAY_MS, "7 d"),
}
REASONS: Mapping[str, str] = {
    REASON_MAX_ATTEMPTS: "Attempts used up",
    REASON_EXPIRED: "Expired",
    REASON_OVERFLOW: "Queue was full",
}
NO_REASON = "Sent here directly"
NO_ERROR = "No error noted"
ALL_WORDS = "all dead letters"
_QUOTED_LENGTH_MAX = 60


class Named(Protocol):
    """Texts by name."""

    def get(self, key: str, default: str, /) -> str: ...


class Parameters(Named, Protocol):
    """The query or the fields of a request."""

    def getlist(self, key: str) -> list[str]: ...


class Chip(Struct, frozen=True):
    """One part of the filter. query: the parameters of the URL without it."""

    name: str
    value: str
    query: dict[str, object]


class Filter(Struct, frozen=True):
    """The dead letters to show."""

    # nothing that became a dead letter later (epoch ms), so that lists and counts hold still while more
    # arrive
    as_of: int
    q: str = ""  # text of the content
    reason: str | None = None
    error: str | None = None  # the last error; "": no error; None: any
    error_like: str | None = None  # a last error; its fingerprint has to match
    attributes: dict[str, str] = {}
    age: str = ""  # one of AGES, "" for any

    @property
    def is_empty(self) -> bool:
        return not (self.q or self.attributes or self.age or self.error_like) and (
            self.reason is None and self.error is None
        )

    def query(self) -> dict[str, object]:
        """The parameters of the URL. "" is left out of a URL, so "no error" has a parameter of its own."""
        return {
            "q": self.q,
            "reason": self.reason,
            "error": self.error,
            "no_error": "1" if self.error == "" else "",
            "error_like": self.error_like,
            "attr": [f"{name}:{value}" for name, value in self.attributes.items()] or None,
            "age": self.age,
        }

    def fields_query(self) -> dict[str, object]:
        """The parameters of the URL of a part of the page: those of `query`, and `as_of`."""
        return {**self.query(), "as_of": self.as_of}

    def fields(self) -> list[tuple[str, object]]:
        """The filter with `as_of`, as hidden fields of a form."""
        pairs: list[tuple[str, object]] = [("as_of", self.as_of)]
        for name, value in self.query().items():
            pairs += [(name, each) for each in value] if isinstance(value, list) else [(name, value)]
        return [(name, value) for name, value in pairs if value not in (None, "")]

    def chips(self) -> list[Chip]:
        """The parts of the filter that are set, except the text."""
        chips = []
        if self.reason is not None:
            chips.append(Chip("Reason", reason_words(self.reason), replace(self, reason=None).query()))
        if self.error is not None:
            chips.append(Chip("Error", error_words(self.error), replace(self, error=None).query()))
        if self.error_like is not None:
            chips.append(Chip("Error like", self.error_like, replace(self, error_like=None).query()))
        if self.age:
            chips.append(Chip("Dead for", f"less than {AGES[self.age][1]}", replace(self, age="").query()))
        for name, value in self.attributes.items():
            left = {other: text for other, text in self.attributes.items() if other != name}
            chips.append(Chip(name, value, replace(self, attributes=left).query()))
        return chips

    def of_group(self, reason: str | None, error: str | None, *, several: bool) -> "Filter":
        """The same filter, for one group only. reason: None if its messages were sent to this queue directly.

        several: the group has several errors like this one.
        """
        if several:
            return replace(self, reason=reason, error=None, error_like=error)
        return replace(self, reason=reason, error=error or "", error_like=None)

    def of_error(self, error: str) -> "Filter":
        """The same filter, for this error only."""
        return replace(self, error=error, error_like=None)

    def without_group(self) -> "Filter":
        return replace(self, reason=None, error=None, error_like=None)

    def question(self, above_sequence: int | None = None) -> MessageFilter:
        """The filter in the form that the broker's lists, counts and tasks take."""
        return MessageFilter(
            reason=self.reason,
            since=self.as_of - AGES[self.age][0] if self.age else None,
            until=self.as_of,
            attributes=self.attributes,
            text=self.q or None,
            error=self.error,
            error_like=self.error_like,
            above_sequence=above_sequence,
        )


def read_filter(given: Parameters, now_ms: int) -> Filter:
    """The filter in a request; invalid parts are ignored."""
    age = given.get("age", "")
    reason, error = given.get("reason", ""), given.get("error", "")
    return Filter(
        as_of=min(read_number(given, "as_of", limits.SEQUENCE_MAX) or now_ms, now_ms),
        q=_text(given.get("q", ""), limits.SEARCH_TEXT_LENGTH_MAX),
        reason=_text(reason, limits.REASON_LENGTH_MAX) or None,
        error="" if given.get("no_error", "") else _text(error, limits.REASON_LENGTH_MAX) or None,
        error_like=_text(given.get("error_like", ""), limits.REASON_LENGTH_MAX) or None,
        attributes=_attributes([*given.getlist("attr"), _added(given)]),
        age=age if age in AGES else "",
    )


def read_number(given: Named, name: str, high: int) -> int:
    """A whole number of a request, between 0 and `high`; 0 if it is not a number."""
    text = given.get(name, "")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    return number if number <= high else 0


def _added(given: Named) -> str:
    """The attribute that the form adds."""
    return f"{given.get('attr_name', '')}:{given.get('attr_value', '')}"


def _attributes(pairs: Iterable[str]) -> dict[str, str]:
    """Attributes from pairs `name:value`; at most ATTRIBUTES_MAX."""
    attributes: dict[str, str] = {}
    for pair in pairs:
        name, colon, value = pair.partition(":")
        name, value = name.strip(), value.strip()
        fits = len(attributes) < limits.ATTRIBUTES_MAX and len(value) <= limits.ATTRIBUTE_VALUE_LENGTH_MAX
        if colon and 0 < len(name) <= limits.ATTRIBUTE_KEY_LENGTH_MAX and fits:
            attributes[name] = value
    return attributes


def _text(text: str, length_max: int) -> str:
    return text[:length_max]


def reason_words(reason: str | None) -> str:
    """Why messages were dead-lettered, for people."""
    return NO_REASON if reason is None else REASONS.get(reason, visible(reason))


def error_words(error: str | None) -> str:
    return visible(error) if error else NO_ERROR


def quoted(text: str) -> str:
    """A text from outside in quotation marks, cut if it is long."""
    cut = text if len(text) <= _QUOTED_LENGTH_MAX else text[: _QUOTED_LENGTH_MAX - 1] + "…"
    return f"“{visible(cut)}”"


def task_words(wanted: AppliedFilter) -> str:
    """Which messages a task is about: "“410 Gone”, expired"; "all dead letters"."""
    parts = []
    if wanted.error is not None:
        parts.append(quoted(wanted.error) if wanted.error else "those without an error")
    if wanted.error_like is not None:
        parts.append(f"those with an error like {quoted(wanted.error_like)}")
    if wanted.reason is not None:
        known = REASONS.get(wanted.reason)
        parts.append(known.lower() if known else quoted(wanted.reason))
    if wanted.text:
        parts.append(f"those with {quoted(wanted.text)}")
    parts += [f"{visible(name)} {quoted(value)}" for name, value in wanted.attributes.items()]
    if wanted.since is not None:
        parts.append(f"dead since {format.clock(wanted.since)} UTC")
    return ", ".join(parts) or ALL_WORDS


def splits(text: str, wanted: str) -> list[tuple[str, bool]]:
    """The parts of a text, each with whether it is the text of the search."""
    if not wanted:
        return [(text, False)]
    parts: list[tuple[str, bool]] = []
    for place, part in enumerate(text.split(wanted)):
        if place:
            parts.append((wanted, True))
        if part:
            parts.append((part, False))
    return parts
