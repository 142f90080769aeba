"""The form of a queue's settings: the text of its fields, and the change that was typed. Plain functions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from forq_trio.config.settings import Config
from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.declared import ValueKind
from forq_trio.model.durations import TEXT_LENGTH_MAX, parse_duration, parse_durations
from forq_trio.model.errors import CallerError
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_checks import check_change
from forq_trio.model.queues.setting_types import FormSection, Setting
from forq_trio.model.queues.setting_values import (
    NO_DEAD_LETTERS,
    BackOff,
    Defaults,
    ExponentialBackOff,
    Overflow,
    Rate,
    RatePer,
)
from forq_trio.model.queues.settings import (
    OF_TABLES,
    SETTINGS,
    QueueRules,
    QueueSettings,
    SettingsChange,
    rules_of,
)
from forq_trio.telemetry import words
from forq_trio.ui.sizes import parse_count, parse_size

BACK_OFFS = {"": "Default", "list": "A list of delays", "exponential": "Growing"}


def _size_text(number: int) -> str:
    """A size that `parse_size` reads as exactly this number."""
    count, unit = words.whole_units(number)
    return f"{count:,} {unit}"


def rate_words(rate: Rate) -> str:
    """ "5 in 1 s, whole queue", which `_parse_rate` reads as this rate."""
    return f"{format.whole(rate.count)} in {format.setting(rate.period_ms)}, {_PER[rate.per]}"


_PER = {RatePer.QUEUE: "whole queue", RatePer.GROUP: "each group"}
_PER_ENDINGS = {
    **{before + words: per for per, words in _PER.items() for before in (" ", ",")},
    **dict.fromkeys(("/group", "/ group"), RatePer.GROUP),
}
_RATE_LENGTH_MAX = 2 * TEXT_LENGTH_MAX
"""A count and a period: more than any rate needs."""


def _parse_rate(text: str) -> Rate:
    """A count and a period: "5 in 1 s", "10/s", "2 in 1 min, each group", "10/s/group".

    Raises ValueError with a sentence.
    """
    typed = " ".join(text.lower().split()) if len(text) <= _RATE_LENGTH_MAX else ""
    ending = next((each for each in _PER_ENDINGS if typed.endswith(each)), "")
    typed = typed.removesuffix(ending).rstrip(" ,")
    count, _, period = (each.strip() for each in typed.replace(" in ", "/", 1).partition("/"))
    if not count or not period:
        raise ValueError("Type a number and a period, as 5 in 1 s, or 5 in 1 s, each group.")
    period_ms = parse_duration(period if period[0].isdigit() else f"1 {period}")
    return Rate(parse_count(count), period_ms, _PER_ENDINGS.get(ending, RatePer.QUEUE))


_EXAMPLES = {ValueKind.RATE: "As 5 in 1 s, or 5 in 1 s, each group. ", ValueKind.BYTES: "As 10 MiB. "}


def _range_words(setting: Setting) -> str:
    """ "Up to 12 h", "1 to 1,000", "no bound" for what has none unless it is set."""
    if setting.default("", Defaults()) is None:
        return f"{_EXAMPLES.get(setting.kind, '')}Empty: no bound."
    show = _TYPED[setting.kind].show
    low = f"{show(setting.low)} to" if setting.low else "Up to"
    return f"{low} {show(setting.high)}."


class Typed(NamedTuple):
    """How values of a kind are read from text and written as text."""

    parse: Callable[[str], Any]  # raises ValueError with a sentence
    show: Callable[[Any], str]  # the text for a value


_TYPED = {
    ValueKind.DURATION: Typed(parse_duration, format.setting),
    ValueKind.COUNT: Typed(parse_count, format.whole),
    ValueKind.BYTES: Typed(parse_size, _size_text),
    ValueKind.RATE: Typed(_parse_rate, rate_words),
}


class Field(Struct, frozen=True):
    """A field of the form. kind: by its name."""

    name: str
    label: str
    help: str
    kind: str
    words: Mapping[str, str]


def _field(setting: Setting) -> Field:
    help = f"{setting.meaning} {_range_words(setting)}" if setting.kind in _TYPED else setting.meaning
    if setting.kind is ValueKind.QUEUE:  # an empty field is the default
        help = f"{help.partition('.')[0]}."
    return Field(setting.name, setting.label, help, setting.kind.name, setting.words)


SECTIONS = {
    section.value: [_field(setting) for setting in SETTINGS.values() if setting.section is section]
    for section in FormSection
}
"""The fields of the form by the title of their section."""
SECTIONS_OF_TABLES = {
    title: found
    for title, fields in SECTIONS.items()
    if (found := [each for each in fields if each.name in OF_TABLES])
}
"""The fields for a queue that is bound to a table."""
_PARTS = {
    ValueKind.BACK_OFF: ("_list", "_initial", "_factor", "_max", "_jitter"),
    ValueKind.QUEUE: ("_none",),
}
"""The endings of the names of a setting's further fields, by its kind."""
NAMES = tuple(
    setting.name + part for setting in SETTINGS.values() for part in ("", *_PARTS.get(setting.kind, ()))
)


def default_rules(queue: str, config: Config) -> QueueRules:
    """The rules of a queue for which nothing was set."""
    defaults = Defaults(
        queue_ttl_ms=config.queue_ttl_hours * limits.HOUR_MS, dlq_ttl_ms=config.dlq_ttl_hours * limits.HOUR_MS
    )
    return rules_of(queue, None, defaults)


def back_off_words(back_off: BackOff) -> str:
    """ "1, 5, 15, 30, 60 s", or "10 s × 2, at most 1 h, 20 % at random"."""
    if isinstance(back_off, ExponentialBackOff):
        share = f", {back_off.jitter:.0%} at random".replace("%", " %") if back_off.jitter else ""
        longest = format.setting(back_off.max_ms)
        return f"{format.setting(back_off.initial_ms)} × {back_off.factor:g}, at most {longest}{share}"
    if len(back_off) > 1 and all(
        ms % limits.SECOND_MS == 0 and ms <= 120 * limits.SECOND_MS for ms in back_off
    ):
        return ", ".join(str(ms // limits.SECOND_MS) for ms in back_off) + " s"
    return ", ".join(format.setting(ms) for ms in back_off)


def value_words(setting: Setting, value: Any) -> str:
    """The value of a rule in words."""
    if value is None:
        return "no bound"
    if setting.kind is ValueKind.WORD:
        return setting.words[value]
    if setting.kind is ValueKind.QUEUE:
        return value or "none"
    if setting.kind is ValueKind.BACK_OFF:
        return back_off_words(value)
    return _TYPED[setting.kind].show(value)


def placeholders(rules: QueueRules) -> dict[str, str]:
    """The placeholders of empty fields: the defaults, `rules`."""
    return {name: value_words(setting, getattr(rules, name)) for name, setting in SETTINGS.items()}


def texts_of(settings: QueueSettings) -> dict[str, str]:
    """The text of the fields for these settings; "" where nothing was set."""
    texts = dict.fromkeys(NAMES, "")
    for name, setting in SETTINGS.items():
        value = getattr(settings, name)
        if value is not None:
            typed = _TYPED.get(setting.kind)
            texts[name] = value if typed is None else typed.show(value)
    back_off = settings.back_off
    if isinstance(back_off, ExponentialBackOff):
        texts["back_off"] = "exponential"
        texts["back_off_initial"] = format.setting(back_off.initial_ms)
        texts["back_off_factor"] = f"{back_off.factor:g}"
        texts["back_off_max"] = format.setting(back_off.max_ms)
        texts["back_off_jitter"] = f"{back_off.jitter * 100:g}"
    elif back_off is not None:
        texts["back_off"] = "list"
        texts["back_off_list"] = ", ".join(format.setting(ms).replace(",", "") for ms in back_off)
    texts["dead_letter_queue_none"] = "1" if settings.dead_letter_queue == NO_DEAD_LETTERS else ""
    return texts


class TypedSettings(Struct):
    """What was typed."""

    texts: dict[str, str]
    errors: dict[str, str]  # a sentence by the name of the field
    change: SettingsChange | None  # None where there are errors


def read(queue: str, form: Mapping[str, str]) -> TypedSettings:
    """Read the form as a change of all settings; an empty field means the default."""
    texts = {name: form.get(name, "").strip()[:4_000] for name in NAMES}
    errors: dict[str, str] = {}
    values: dict[str, Any] = {}

    def parsed(name: str, parse: Callable[[str], Any], text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            errors[name] = str(error)
            return None

    for name, setting in SETTINGS.items():
        parse = _choice(setting) if setting.kind is ValueKind.WORD else None
        if setting.kind in _TYPED:
            parse = _TYPED[setting.kind].parse
        if parse is not None:
            values[name] = parsed(name, parse, texts[name]) if texts[name] else None
    values["back_off"] = _back_off(texts, parsed)
    values["dead_letter_queue"] = (
        NO_DEAD_LETTERS if texts["dead_letter_queue_none"] else texts["dead_letter_queue"] or None
    )
    for name, sentence in _out_of_range(queue, texts, values):
        errors.setdefault(name, sentence)
    return TypedSettings(texts, errors, None if errors else SettingsChange(**values))


def _out_of_range(
    queue: str, texts: Mapping[str, str], values: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """The fields with invalid values, each with a sentence. Each is checked without the others."""
    changes = [SettingsChange(**{name: value}) for name, value in values.items() if value is not None]
    back_off = values["back_off"]
    if isinstance(back_off, ExponentialBackOff):
        harmless = ExponentialBackOff(initial_ms=1, factor=2, max_ms=limits.NACK_DELAY_MS_MAX, jitter=0)
        for names in (("initial_ms",), ("factor",), ("jitter",), ("initial_ms", "max_ms")):
            kept = {name: getattr(back_off, name) for name in names}
            changes.append(SettingsChange(back_off=msgspec.structs.replace(harmless, **kept)))
    for change in changes:
        try:
            check_change(queue, change)
        except CallerError as error:
            yield error_of(error, texts)


def _choice(setting: Setting) -> Callable[[str], str]:
    """The reader of one of the setting's words."""
    words = {str(word): word for word in setting.words}

    def read_choice(text: str) -> str:
        if text not in words:
            raise ValueError("Choose one of these.")
        return words[text]

    return read_choice


def _back_off(
    texts: Mapping[str, str], parsed: Callable[[str, Callable[[str], Any], str], Any]
) -> BackOff | None:
    if texts["back_off"] == "list":
        delays: tuple[int, ...] | None = parsed("back_off_list", parse_durations, texts["back_off_list"])
        return delays
    if texts["back_off"] != "exponential":
        return None
    initial_ms = parsed("back_off_initial", parse_duration, texts["back_off_initial"])
    max_ms = parsed("back_off_max", parse_duration, texts["back_off_max"] or "1 h")
    factor = parsed("back_off_factor", _number, texts["back_off_factor"] or "2")
    share = parsed("back_off_jitter", _number, (texts["back_off_jitter"] or "0").removesuffix("%"))
    if None in (initial_ms, max_ms, factor, share):
        return None
    return ExponentialBackOff(initial_ms=initial_ms, factor=factor, max_ms=max_ms, jitter=share / 100)


def _number(text: str) -> float:
    text = text.strip()
    if not text.isascii() or len(text) > 12 or not text.replace(".", "", 1).isdigit():
        raise ValueError("Type a number, as 2 or 1.5.")
    return float(text)


def _field_of(error: CallerError, texts: Mapping[str, str]) -> str:
    """The field of the form that an error is about; "" for none of them."""
    name = error.field or ""
    if name != "back_off":
        return name if name in NAMES else ""
    if texts["back_off"] == "list":
        return "back_off_list"
    members = {"initial_ms": "initial", "factor": "factor", "max_ms": "max", "jitter": "jitter"}
    member = next((form for word, form in members.items() if word in error.message), "initial")
    return f"back_off_{member}"


def error_of(error: CallerError, texts: Mapping[str, str]) -> tuple[str, str]:
    """The field of the form that an error is about, "" for none of them, and what it says as a sentence."""
    text = error.message.removeprefix(f"{error.field}: ")
    return _field_of(error, texts), format.sentence(text)


def losses(counts: QueueCounts, before: QueueRules, after: QueueRules) -> list[str]:
    """Sentences about the messages that the rules `after` would delete and `before` would not."""
    found = []
    deletes = after.overflow is Overflow.DROP_OLDEST or (
        after.overflow is Overflow.DEAD_LETTER and not after.dead_letter_queue
    )
    if deletes and after.max_messages is not None and counts.total > after.max_messages:
        many = format.plural(counts.total - after.max_messages, "message")
        found.append(
            f"The queue holds {format.whole(counts.total)} and may hold {format.whole(after.max_messages)}: "
            f"the next sends delete the oldest, up to {many}."
        )
    if deletes and after.max_bytes is not None and counts.bytes > after.max_bytes:
        found.append(
            f"The queue holds {format.size(counts.bytes)} and may hold {format.size(after.max_bytes)}: "
            "the next sends delete the oldest."
        )
    ends = None
    if before.dead_letter_queue and not after.dead_letter_queue:
        ends = "fails or expires"
    elif after.dead_letter_queue and after.deletes_expired and not before.deletes_expired:
        ends = "expires"
    if ends is not None and counts.total:
        many = format.plural(counts.total, "message")
        found.append(f"What {ends} is deleted, not kept as a dead letter: {many} may do so.")
    return found


def rules_after(change: SettingsChange, defaults: QueueRules, paused: bool) -> QueueRules:
    """The rules once everything is as `change` says; None there is the default."""
    given = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
    return msgspec.structs.replace(defaults, **given, paused=paused)
