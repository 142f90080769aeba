"""The options of `forq queue set` and `forq send`, made from the declarations of settings and message options.

`forq queue show` prints a value in the form that its option takes, so that it can be copied to another queue.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import click

from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import CommandT, all_options, duration_ms, duration_text, moment_ms, pairs
from forq_trio.model import durations
from forq_trio.model.declared import Declared, ValueKind
from forq_trio.model.messages.new_message import OPTIONS, MessageOptions
from forq_trio.model.queues.setting_values import BackOff, ExponentialBackOff, Rate, RatePer
from forq_trio.model.queues.settings import SETTINGS
from forq_trio.telemetry import words

_NO_BOUND = "no limit"


class _Word(click.Choice[str]):
    """A choice of words; the API writes them with _ where the option has -."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(value, param, ctx).replace("-", "_")


def back_off(text: str) -> BackOff:
    """A list of delays, or a formula as `initial=1s,factor=2`. For use as an option's type."""
    parts = text.split(",")
    if "=" not in text:
        return tuple(duration_ms(part) for part in parts)
    members = dict(part.partition("=")[::2] for part in parts)
    if len(members) < len(parts) or "initial" not in members or members.keys() - _FORMULA.keys():
        raise click.BadParameter(f"{text!r} is not of the form initial=1s,factor=2,max=1h,jitter=0.2")
    values: dict[str, Any] = {_FORMULA[name]: _FORMULA_TYPES[name](value) for name, value in members.items()}
    return ExponentialBackOff(**values)


def _factor(text: str) -> float:
    if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) is None:
        raise click.BadParameter(f"{text!r} is not a number such as 2 or 0.25")
    return float(text)


_FORMULA = {"initial": "initial_ms", "factor": "factor", "max": "max_ms", "jitter": "jitter"}
_FORMULA_TYPES: dict[str, Callable[[str], float]] = {
    "initial": duration_ms,
    "factor": _factor,
    "max": duration_ms,
    "jitter": _factor,
}


def size_bytes(text: str) -> int:
    """A number of bytes, from a number with or without a unit. For use as an option's type."""
    found = re.fullmatch(r"([0-9]{1,18})(KiB|MiB|GiB|TiB)?", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a size such as 5000, 64KiB, 10MiB or 2GiB")
    return int(found[1]) * words.SIZE_UNITS[found[2] or "B"]


def _back_off_text(value: BackOff) -> str:
    if isinstance(value, tuple):
        return ",".join(map(durations.as_option, value))
    initial, longest = durations.as_option(value.initial_ms), durations.as_option(value.max_ms)
    return f"initial={initial},factor={value.factor:g},max={longest},jitter={value.jitter:g}"


def _size_text(size: int | None) -> str:
    if size is None:
        return _NO_BOUND
    count, unit = words.whole_units(size)
    return f"{count}{unit if unit != 'B' else ''}"


def _number_text(number: int | None) -> str:
    return _NO_BOUND if number is None else str(number)


def _word_text(word: str) -> str:
    return word.replace("_", "-")


def rate(text: str) -> Rate:
    """A count and a period, as 10/s; with /group it applies to each group. For use as an option's type."""
    found = re.fullmatch(r"([0-9]{1,12})/([^/]+)(/group)?", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a rate such as 10/s, 100/5m or 2/s/group")
    period = found[2] if found[2][0].isdigit() else f"1{found[2]}"
    return Rate(int(found[1]), duration_ms(period), RatePer.GROUP if found[3] else RatePer.QUEUE)


def _rate_text(rate: Rate | None) -> str:
    if rate is None:
        return _NO_BOUND
    period = durations.as_option(rate.period_ms)
    unit = period[1:] if period[0] == "1" and period[1:].isalpha() else period
    return f"{rate.count}/{unit}{'/group' if rate.per is RatePer.GROUP else ''}"


class OptionForm(NamedTuple):
    """How a kind of value is typed and printed. hint: what to type; it follows the meaning in the help."""

    type: Callable[[Any], Any]
    metavar: str | None
    text: Callable[[Any], str]
    hint: str = ""


def _number_type(declared: Declared) -> click.IntRange:
    return click.IntRange(declared.low, declared.high)


def _word_type(declared: Any) -> _Word:
    return _Word([_word_text(word) for word in declared.words])


FORMS = {
    ValueKind.TIME: OptionForm(lambda option: moment_ms, "TIME", str, " In ISO 8601, or epoch ms."),
    ValueKind.DURATION: OptionForm(lambda declared: duration_ms, "DURATION", durations.as_option),
    ValueKind.COUNT: OptionForm(_number_type, "INTEGER", _number_text),
    ValueKind.BYTES: OptionForm(lambda setting: size_bytes, "SIZE", _size_text),
    ValueKind.TEXT: OptionForm(lambda option: str, "TEXT", str),
    ValueKind.WORD: OptionForm(_word_type, None, _word_text),
    ValueKind.QUEUE: OptionForm(lambda declared: QUEUE, "NAME", lambda name: name or "(none)"),
    ValueKind.BACK_OFF: OptionForm(
        lambda setting: back_off,
        "DELAYS",
        _back_off_text,
        " As 1s,5s,1m or initial=1s,factor=2,max=1h,jitter=0.2.",
    ),
    ValueKind.RATE: OptionForm(lambda setting: rate, "RATE", _rate_text, " As 10/s, 100/5m or 2/s/group."),
    ValueKind.DURATION_TEXT: OptionForm(lambda declared: duration_text, "DURATION", str),
    ValueKind.DAY_TIMES: OptionForm(lambda declared: str, "TIME", str),
    ValueKind.TIME_ZONE: OptionForm(lambda declared: str, "ZONE", str),
}


def option_of(declared: Declared, default: str = "") -> Callable[[CommandT], CommandT]:
    """The option for a declared member; its value is None if it is not given. default: says what applies then."""
    names = f"--{declared.option}", declared.name
    ending = default and f"  [default: {default}]"
    says = declared.says(lambda name: f"--{OPTIONS[name].option}")
    if declared.kind is ValueKind.PAIRS:
        return pairs(*names, help=f"{says} May be repeated.{ending}")
    form = FORMS[declared.kind]
    return click.option(
        *names,
        type=form.type(declared),
        metavar=form.metavar,
        multiple=declared.kind is ValueKind.DAY_TIMES,
        help=f"{says}{form.hint}{ending}",
    )


setting_options = all_options(*map(option_of, SETTINGS.values()))
"""An option for each setting of a queue; its value is None if it is not given."""


def options_but(*names: str) -> Callable[[CommandT], CommandT]:
    """An option for each option of a message, except those with these names."""
    return all_options(
        *(option_of(each, each.default) for each in OPTIONS.values() if each.name not in names)
    )


message_options = options_but()
"""An option for each option of a message."""


def given(options: MessageOptions) -> MessageOptions:
    """The options that were given on the command line."""
    chosen = {name: value for name, value in options.items() if value is not None and value != {}}
    return cast("MessageOptions", chosen)
