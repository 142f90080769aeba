"""JSON that we make, or read of others: no NaN, and no deeper than every reader can go."""

import json
import math
from dataclasses import dataclass
from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio import NewMessage
from forq_trio.model.errors import InvalidJson
from forq_trio.model.json_text import (
    bounded,
    check_depth,
    check_range,
    dumps,
    encode,
    encode_lines,
    encode_payload,
    is_json,
    loads,
)
from forq_trio.model.limits import JSON_DEPTH_MAX

NAN, INF = math.nan, math.inf


class Point(msgspec.Struct, rename="camel"):
    how_far: float
    to: "Point | None" = None


@dataclass
class Plain:
    x: float


def nested(depth: int) -> list:
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (NAN, "the value is nan, which JSON has no number for"),
        ([1.0, INF], r"\[1\] is inf, which"),
        ({"a": {"b": (None, -INF)}}, r"a\.b\[1\] is -inf, which"),
        (Point(1, Point(NAN)), r"to\.howFar is nan"),
        (Plain(INF), "x is inf"),
        ({NAN: 1}, "the value is nan"),
        ({"k": {INF: 1}}, "k is inf"),
    ],
)
def test_a_number_that_json_has_not_is_refused_by_name(value, words) -> None:
    for write in (encode, encode_payload, lambda each: encode_lines([each])):
        with pytest.raises(InvalidJson, match=words.replace("the value", r"(the value|\[0\])")):
            write(value)


@pytest.mark.parametrize(
    "value",
    [None, {"a": None}, "null", {"nan": None}, '"inf"', Point(1.5), Decimal("NaN"), [{"x": [None, 0.0]}]],
)
def test_null_and_the_words_themselves_are_no_numbers(value) -> None:
    assert encode(value) == encode_payload(value) == msgspec.json.encode(value)


def members(inner):
    return st.lists(inner) | st.dictionaries(st.text(), inner)


@given(st.recursive(st.none() | st.floats() | st.text() | st.just("null"), members))
def test_a_value_comes_back_or_is_refused(value) -> None:
    unknown: list[str] = []
    json.loads(json.dumps(value), parse_constant=unknown.append)
    if not unknown:
        assert loads(encode_payload(value).decode()) == loads(dumps(value)) == value
    else:
        for write in (encode_payload, dumps):
            with pytest.raises(InvalidJson):
                write(value)


def test_values_are_nested_so_deep_and_no_deeper() -> None:
    most = nested(JSON_DEPTH_MAX)
    assert loads(encode_payload(most).decode()) == loads(dumps(most)) == most
    for depth in (JSON_DEPTH_MAX + 1, 5_000, 100_000):
        for write in (encode_payload, dumps):
            with pytest.raises(InvalidJson, match=f"nested deeper than {JSON_DEPTH_MAX} levels"):
                write(nested(depth))
        for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            assert not is_json(text.encode())
            for read in (loads, bounded(msgspec.json.decode)):
                with pytest.raises(InvalidJson, match="nested deeper"):
                    read(text)


def test_what_is_wide_or_in_texts_is_not_deep() -> None:
    wide = [[{"a": '[[[{{\\"['}]] * 5_000
    assert loads(dumps(wide)) == wide
    check_depth('["' + "[{" * 100_000)
    check_depth('"' + '\\"[' * 1_000 + '"')


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a":-Infinity}', "\ufeff1", "1\0", "", "'a'", "01", "[1,]"]
)
def test_what_is_no_json_is_none(text) -> None:
    assert not is_json(text.encode())
    with pytest.raises(ValueError):  # noqa: PT011  # of either reader
        loads(text)


@pytest.mark.parametrize(
    "text", ["1e999", "[-1E+309]", '{"a":[1e400]}', "9" * 309, "9" * 5_000, "1" * 310 + ".5"]
)
def test_a_number_beyond_a_double_is_no_json(text) -> None:
    """JSON's grammar has it. Python reads infinity, or an integer, or refuses; JavaScript infinity; msgspec refuses."""
    assert not is_json(text.encode())
    with pytest.raises(InvalidJson, match="is too large for a number"):
        loads(text)
    with pytest.raises(InvalidJson):
        check_range(text)


@pytest.mark.parametrize(
    "text", ["1e308", "1e-999", "1" * 308, "8" * 308, '"1e999"', f'["{"9" * 400}"]', '{"1e999":"3e5"}']
)
def test_what_every_reader_takes_as_the_same_number_or_text_is_json(text) -> None:
    assert is_json(text.encode())
    check_range(text)
    assert loads(text) == json.loads(text)


def test_half_of_a_surrogate_pair_is_no_json() -> None:
    assert not is_json(b'"\\ud800"')
    assert is_json(b'"\\ud83d\\ude00"')


@pytest.mark.parametrize("write", [encode, encode_payload, dumps])
def test_an_integer_beyond_a_double_is_not_written(write) -> None:
    with pytest.raises(InvalidJson, match=r"a\[1\] is an integer of 1329 bits, which most readers"):
        write({"a": [1, 10**400]})
    for value in (2**1023, -(2**1023), "9" * 400):
        assert msgspec.json.decode(write({"a": value}))["a"] in (value, float(value))


def test_a_message_of_json_says_what_is_wrong() -> None:
    with pytest.raises(InvalidJson, match=r"^price is nan, which JSON has no number for$"):
        NewMessage.of_json({"price": NAN})
    with pytest.raises(ValueError, match="Circular"):
        NewMessage.of_json(in_itself())


def in_itself() -> list:
    value: list = []
    value.append(value)
    return value
