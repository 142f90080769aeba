"""Receive by attributes: the conditions that must all hold for a message to be received."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.errors import InvalidRequest


class NotEqual(Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Matches messages whose attribute has another value."""

    value: str = msgspec.field(name="not")  # the value that it must not have
    or_absent: bool = False  # also messages without the attribute


class Condition(NamedTuple):
    """A condition on one attribute."""

    key: str
    value: str
    negated: bool = False  # the attribute has any other value
    or_absent: bool = False  # or is absent

    def holds(self, attributes: Mapping[str, str]) -> bool:
        found = attributes.get(self.key)
        if found is None:
            return self.or_absent
        return (found != self.value) if self.negated else found == self.value


Where = tuple[Condition, ...]
"""Conditions that must all hold, sorted: equal ones compare equal. () takes any message."""


Wanted = Mapping[str, str | NotEqual | Mapping[str, str | bool]]
"""Conditions as callers write them: the value of each attribute, `NotEqual`, or {"not": text, "orAbsent": bool}."""


def takes(where: Where, attributes: Mapping[str, str] | None) -> bool:
    """Whether a message with these attributes meets all conditions."""
    return all(condition.holds(attributes or {}) for condition in where)


def where_of(wanted: object, *, shuffle: bool = False) -> Where:
    """The conditions in a mapping of attribute to text, `NotEqual` or {"not": text, "orAbsent": bool}; None for none.

    Raises InvalidRequest for anything else, for too many conditions, and for names or values no attribute can have.
    """
    if wanted is None:
        return ()
    if shuffle:
        raise _invalid("is not possible with a random order")
    if not isinstance(wanted, Mapping):
        raise _invalid("must map attributes to values")
    if len(wanted) > limits.ATTRIBUTES_MAX:
        raise _invalid(f"has {len(wanted)} conditions; at most {limits.ATTRIBUTES_MAX} are possible")
    where = tuple(sorted(_condition(key, value) for key, value in wanted.items()))
    if sum(len(each.key) + len(each.value) for each in where) > limits.WHERE_LENGTH_MAX:
        raise _invalid(f"has more than {limits.WHERE_LENGTH_MAX:,} characters of names and values")
    return where


def _condition(key: object, wanted: object) -> Condition:
    if not isinstance(key, str) or not 0 < len(key) <= limits.ATTRIBUTE_KEY_LENGTH_MAX:
        raise _invalid(f"names attributes of 1 to {limits.ATTRIBUTE_KEY_LENGTH_MAX} characters")
    negated = not isinstance(wanted, str)
    if negated:
        try:
            wanted = wanted if isinstance(wanted, NotEqual) else msgspec.convert(wanted, NotEqual)
        except msgspec.ValidationError as problem:
            raise _invalid(f'for {key} must be a text or {{"not": text}}: {problem}') from None
    value, or_absent = (wanted.value, wanted.or_absent) if isinstance(wanted, NotEqual) else (wanted, False)
    if not isinstance(value, str) or len(value) > limits.ATTRIBUTE_VALUE_LENGTH_MAX:
        most = limits.ATTRIBUTE_VALUE_LENGTH_MAX
        raise _invalid(f"for {key} must be a text of at most {most:,} characters")
    return Condition(key, value, negated, or_absent)


def _invalid(problem: str) -> InvalidRequest:
    return InvalidRequest(f"where {problem}", field="where")


def json_of(where: Where) -> dict[str, str | NotEqual] | None:
    """The conditions as they are in the body of a request; None for none."""
    return {
        each.key: NotEqual(each.value, each.or_absent) if each.negated else each.value for each in where
    } or None
