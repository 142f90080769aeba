"""Forms are read as browsers write them, and in time that grows with their length alone."""

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.exceptions import RequestEntityTooLarge

from forq_trio.model.limits import UI_FORM_FIELDS_MAX
from forq_trio.ui.forms import read_form


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=20))
def test_what_a_browser_writes_is_what_is_read(fields):
    read = read_form(urlencode(fields).encode())
    assert sorted(read.items(multi=True)) == sorted(
        (name.encode("utf-8", "replace").decode(), value.encode("utf-8", "replace").decode())
        for name, value in fields
    )


@pytest.mark.parametrize(
    "body", [b"", b"&", b"a", b"a&b=1", b"a=%zz%4", b"a=+%2B", b"=x", b"a=1&a=2", b"a=b=c", b"%61=%C3%A9&&"]
)
def test_odd_forms_are_read_as_by_the_standard_library(body):
    expected = parse_qsl(body.decode(), keep_blank_values=True)
    assert list(read_form(body).items(multi=True)) == expected


def test_bytes_that_are_no_text_are_replaced():
    assert read_form(b"a=%ff%fe")["a"] == "\ufffd\ufffd"


def test_too_many_fields_are_refused_before_any_is_read():
    assert (
        len(list(read_form(b"&".join([b"a=1"] * UI_FORM_FIELDS_MAX)).items(multi=True))) == UI_FORM_FIELDS_MAX
    )
    with pytest.raises(RequestEntityTooLarge):
        read_form(b"a&" * 524_000)
