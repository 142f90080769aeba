"""Shared by endpoints: checks of ranges, and reading the number in a path.

A `field` is the part of the request that a refusal blames: `$.max` of the body, or the name of a parameter.
"""

from forq_trio.http.forq_api.refusals import Refused
from forq_trio.model import errors, limits
from forq_trio.model.forq_error import Reason


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


def number_of_path(text: str) -> int:
    """The number of a lease, from the path. Raises Refused if the text is not a number."""
    high = limits.SEQUENCE_MAX
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        raise Refused(errors.OutOfRange, f"number must be between 1 and {high}", field="number")
    return int(text)


def _name(field: str) -> str:
    return field.removeprefix("$.")
