"""What errors have in common."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.model import limits
from forq_trio.model.fingerprints import VARYING, fingerprint, fingerprint_key, parts


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("timed out after 10 s at /hooks/41", "timed out after ‹n› s at /hooks/‹n›"),
        ("410 Gone: subscription 88", "410 Gone: subscription ‹n›"),
        ("HTTP 503 for order 17", "HTTP 503 for order ‹n›"),
        ("status: 503, order 17", "status: ‹n›, order ‹n›"),
        ("status code=404 of a_7", "status code=404 of ‹n›"),
        ("lost after 503 tries", "lost after ‹n› tries"),
        ("connect to 10.0.0.1:8080 refused", "connect to ‹n› refused"),
        ("connect to https://api.example.org/v1/x refused", "connect to https://‹n›/‹n›/x refused"),
        ("no mailbox for ann.b+c@example.org.", "no mailbox for ‹n›."),
        ("at 2026-11-17T08:00:01.5Z, then 1,234.5", "at ‹n›, then ‹n›"),
        ("id 0199164b-4dea-78d9-9b4c-c699d5037962 evt_01JD81", "id ‹n› ‹n›"),
        ("requests.exceptions.ConnectionError: refused", "requests.exceptions.ConnectionError: refused"),
        ("", ""),
        ("größe 5 µs", "größe ‹n› µs"),
    ],
)
def test_what_varies_is_left_out(error, expected):
    assert fingerprint(error) == expected


@given(st.text(alphabet=st.sampled_from("ab5-_.,:@/ 0‹n›H\n\0é"), max_size=60))
def test_a_fingerprint_is_its_own_and_the_parts_are_the_text(error):
    assert fingerprint(fingerprint(error)) == fingerprint(error)
    assert "".join(part for part, _ in parts(error)) == error


def test_the_key_says_which_errors_are_alike():
    assert (
        fingerprint_key("after 10 s") == fingerprint_key("after 9 s") == fingerprint_key(f"after {VARYING} s")
    )
    assert fingerprint_key("after 10 s") != fingerprint_key("after 10 ms")
    assert fingerprint_key("") is None
    assert fingerprint_key(None) is None
    assert -limits.SEQUENCE_MAX - 1 <= fingerprint_key("x") <= limits.SEQUENCE_MAX
