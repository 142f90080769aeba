"""Shared by endpoints: checks of ranges, and reading the parameters of a query.

A `field` is the part of the request that a refusal blames: `$.max` of the body, or the name of a parameter.
"""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qs

from forq_trio.http.forq_api.refusals import Refused, shortened
from forq_trio.http.router import NOT_UTF8
from forq_trio.model import errors, limits
from forq_trio.model.forq_error import Reason

ChoiceT = TypeVar("ChoiceT")


def check_range(field: str, value: int, low: int, high: int) -> None:
    """Raise Refused unless low <= value <= high."""
    if not low <= value <= high:
        name = _name(field)
        message = f"{name} must be between {low} and {high}, not {value}"
        raise Refused(errors.OutOfRange.about(name), message, field=field)


def check_length(field: str, length: int, length_max: int, unit: str, reason: Reason) -> None:
    """Raise Refused with `reason` unless length <= length_max. unit: what is counted, such as "characters"."""
    if length > length_max:
        raise Refused(reason, f"{_name(field)} has at most {length_max} {unit}, not {length}", field=field)


def query_number(query: str, name: str, default: int, low: int, high: int) -> int:
    """The number `name` of a query string, the last one if it is repeated; `default` if it is not there.

    Raises Refused when it is not plain digits, or outside low to high.
    """
    text = _last(query, name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        message = f"{name} must be between {low} and {high}, not '{shortened(text)}'"
        raise Refused(errors.OutOfRange.about(name), message, field=name)
    check_range(name, int(text), low, high)
    return int(text)


def number_of_path(text: str) -> int:
    """The number of a lease, in a path. Raises Refused when it is none."""
    high = limits.SEQUENCE_MAX
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        raise Refused(errors.OutOfRange, f"number must be between 1 and {high}", field="number")
    return int(text)


def query_text(query: str, name: str) -> str | None:
    """The value of the parameter `name` of a query string, the last one if it is repeated; None if it is not there."""
    return _last(query, name)


def query_limit(query: str, most: int, default: int | None = None) -> int:
    """The `limit` of a list, from 1 to `most`; default: None for `most`. Raises Refused for one that is none."""
    default = most if default is None else default
    return query_number(query, "limit", default, 1, most)


def query_range(query: str) -> tuple[int, int | None]:
    """The `after` and `until` of a page of a log; until: None for all. Raises Refused for one that is none."""
    newest = limits.SEQUENCE_MAX
    after, until = (
        query_number(query, name, missing, 0, newest) for name, missing in (("after", 0), ("until", newest))
    )
    return after, None if until == newest else until


def query_page(query: str) -> tuple[str, int]:
    """The `after` and `limit` of a list of queues. Raises Refused for a limit that is none."""
    return _last(query, "after") or "", query_limit(query, limits.QUEUES_PAGE_MAX)


def query_choice(query: str, name: str, choices: Mapping[str, ChoiceT], default: ChoiceT) -> ChoiceT:
    """The value of the parameter `name` of a query string in `choices`, the last one if it is repeated, else `default`.

    Raises Refused when it is none of `choices`.
    """
    text = _last(query, name)
    if text is None:
        return default
    if text not in choices:
        message = f"{name} must be one of {', '.join(choices)}, not '{shortened(text)}'"
        raise Refused(errors.InvalidParameter.about(name), message, field=name)
    return choices[text]


def query_flag(query: str, name: str) -> bool:
    """The parameter `name` of a query string, False if it is not there. Raises Refused if it is no true or false."""
    return query_choice(query, name, {"false": False, "true": True}, False)


def query_shuffles(query: str) -> bool:
    """Whether a query string asks for `order=shuffle`. Raises Refused for any other order than fifo."""
    return query_choice(query, "order", {"fifo": False, "shuffle": True}, False)


def _name(field: str) -> str:
    return field.removeprefix("$.")


def _last(query: str, name: str) -> str | None:
    values = parse_qs(query, keep_blank_values=True, errors=NOT_UTF8).get(name) if query else None
    return None if values is None else values[-1]
