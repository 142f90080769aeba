"""Servers find out whether they have the same secret, and tell nothing about it."""

from hashlib import sha256

import pytest

from forq_trio.model.access.secret_checks import SecretCheck

SECRET, OTHER = "a" * 32, "b" * 32


def test_the_same_secret_is_known_by_a_check_that_is_new_for_each_server() -> None:
    one, two, other = SecretCheck(SECRET), SecretCheck(SECRET), SecretCheck(OTHER)
    assert one.own != two.own
    assert not one.differs(two.own)
    assert not two.differs(one.own)
    assert one.differs(other.own)
    assert other.differs(one.own)


@pytest.mark.parametrize(
    "check", [None, "", "1:", "2:" + "0" * 97, "1:" + "0" * 32 + ":" + "g" * 64, "1:" + "0" * 97 + "\n"]
)
def test_what_is_no_check_of_ours_tells_nothing(check: str | None) -> None:
    """That of a later version may have another form."""
    assert not SecretCheck(SECRET).differs(check)


def test_a_check_has_nothing_of_the_secret_in_it() -> None:
    check = SecretCheck(SECRET).own
    assert SECRET not in check
    assert sha256(SECRET.encode()).hexdigest() not in check
    assert sha256(bytes.fromhex(check.split(":")[1]) + SECRET.encode()).hexdigest() not in check
