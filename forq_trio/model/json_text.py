"""Encodes and decodes JSON of applications, with the same bounds everywhere.

- NaN and infinities are refused: JSON has no such numbers, and null, which many encoders write instead, means something
  else.
- Numbers beyond the range of a double, such as 1e999, are refused although the grammar of JSON permits them: some
  readers take them as infinity, some as an integer, others refuse them. So accepted JSON means the same to all readers.
- Arrays and objects may be nested at most JSON_DEPTH_MAX deep: readers recurse, and how deep they can depends on their
  caller.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, TypeVar

import msgspec

from forq_trio.model import limits
from forq_trio.model.request_errors import InvalidJson

T = TypeVar("T")

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*"?', re.DOTALL)
_STEPS = {**dict.fromkeys(b"[{", 1), **dict.fromkeys(b"]}", -1)}
_NOT_BRACKETS = bytes(set(range(256)) - _STEPS.keys())
_LARGE = re.compile(r"[0-9][eE]\+?[0-9]|(?<![0-9])[0-9]{309}")
"""Matches every text with a number beyond a double (the largest has 309 digits), and some other texts."""
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_ZEROS = b"0" * 309
_TOO_DEEP = f"it is nested deeper than {limits.JSON_DEPTH_MAX} levels"


def encode(value: Any) -> bytes:
    """The JSON of one of our own types, as a request carries it.

    Raises InvalidJson, which names the member, for NaN and infinities; TypeError for a type that msgspec does not
    know; UnicodeEncodeError for text that UTF-8 cannot carry.
    """
    return _checked(msgspec.json.encode(value), value)


def encode_lines(values: Sequence[Any]) -> bytes:
    """The JSON of each value in a line. Raises as `encode`."""
    return _checked(_encode_lines(values), values)


_encode_lines = msgspec.json.Encoder().encode_lines


def encode_payload(value: Any, *, ordered: bool = False) -> bytes:
    """The JSON of any value. ordered: sort members, so that equal dicts have the same JSON.

    Raises like `encode`, and InvalidJson for a value that is nested too deep.
    """
    try:
        text = _checked(msgspec.json.encode(value, order="deterministic" if ordered else None), value)
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    check_depth(text)
    return text


def _checked(text: bytes, value: Any) -> bytes:
    """Return the text. Raises InvalidJson if the value has an integer beyond a double, NaN or an infinity; for the
    latter two msgspec writes null, or a word if it is a key."""
    if any(word in text for word in _TRACES_OF_NO_NUMBER) or _has_long_number(text):
        check_numbers(msgspec.to_builtins(value))
    return text


def _has_long_number(text: bytes) -> bool:
    """Whether it has 309 digits in a row: all integers beyond a double have. A pattern takes 30 times as long."""
    return _LONG_ZEROS in text.translate(_DIGITS_AS_ZEROS)


_TRACES_OF_NO_NUMBER = (b"null", b'"nan"', b'"inf"', b'"-inf"')


def check_numbers(value: Any) -> None:
    """Raise InvalidJson, which names the member, unless all numbers in plain dicts and lists are finite doubles."""
    pending = [("", value)]
    while pending:
        path, each = pending.pop()
        if isinstance(each, float | int):
            reason = _refusal(each)
            if reason:
                name = path.removeprefix(".")
                raise InvalidJson(f"{name or 'the value'} is {reason}", field=name or None)
        elif isinstance(each, Mapping):
            pending += [(path, key) for key in each if isinstance(key, float)]
            pending += [(f"{path}.{key}", member) for key, member in each.items()]
        elif isinstance(each, list | tuple | set | frozenset):
            pending += [(f"{path}[{place}]", item) for place, item in enumerate(each)]


def _refusal(number: float) -> str:
    """Why JSON cannot have this number; "" if it can."""
    try:
        return "" if math.isfinite(number) else f"{number}, which JSON has no number for"
    except OverflowError:
        return f"an integer of {number.bit_length()} bits, which most readers of JSON take as infinity"  # type: ignore[attr-defined]


def check_depth(text: str | bytes) -> None:
    """Raise InvalidJson if JSON is nested deeper than JSON_DEPTH_MAX. A text that is not JSON may pass or raise."""
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if raw.count(b"[") + raw.count(b"{") <= limits.JSON_DEPTH_MAX:
        return
    brackets = _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > limits.JSON_DEPTH_MAX:
        raise InvalidJson(_TOO_DEEP)


def bounded(read: Callable[[str], T]) -> Callable[[str], T]:
    """Wrap a reader of JSON so that it raises InvalidJson for a text that is nested too deep."""

    def read_bounded(text: str) -> T:
        check_depth(text)
        return read(text)

    return read_bounded


def dumps(value: Any) -> str:
    """The JSON of plain values: dicts, lists, tuples, texts, numbers, booleans, None.

    Raises InvalidJson as `encode`, and TypeError for any other type.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    except ValueError as problem:
        if "ircular" not in str(problem):
            check_numbers(value)
        raise
    check_depth(text)
    if _LARGE.search(text):
        check_numbers(value)
    return text


def loads(text: str) -> Any:
    """The value of a JSON text: dicts, lists, texts, numbers, booleans, None. Raises ValueError; InvalidJson is one."""
    check_depth(text)
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_read_float, parse_int=_read_integer)


def check_range(text: str) -> None:
    """Raise InvalidJson if JSON has a number beyond a double, for readers that take it as infinity."""
    if _LARGE.search(text):
        with suppress(json.JSONDecodeError):  # its reader says so
            loads(text)


def _read_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidJson(f"{text[:20]} is too large for a number")
    return number


def _read_integer(text: str) -> int:
    if len(text) >= _INTEGER_DIGITS:
        _read_float(text)
    return int(text)


def _refuse_constant(word: str) -> None:
    raise InvalidJson(f"JSON has no {word}")


def is_json(text: bytes) -> bool:
    """Whether every reader accepts a text as JSON with the same meaning: no NaN, no 1e999, no half of a surrogate pair,
    no byte order mark, nothing after it, not nested too deep."""
    try:
        check_depth(text)
        _read(text)
        if _has_long_number(text):
            loads(text.decode())
    except (ValueError, RecursionError):  # msgspec's DecodeError is one
        return False
    return True


_read = msgspec.json.Decoder().decode  # refuses floats that are too large, unlike one that skips a value
_INTEGER_DIGITS = 309  # with fewer every integer is a double
