"""Globs, scopes, and what a token may be like: plain values."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.broker.views import token_info
from forq_trio.model import limits
from forq_trio.model.access.types import (
    EVERYBODY,
    AccessToken,
    Principal,
    Scope,
    check_token,
    digest,
    is_token_name,
    new_token_text,
)
from forq_trio.model.errors import Forbidden, InvalidToken
from support.access import access_token

T0 = 1_700_000_000_000
NAME_CHARACTERS = "ABCXYZabcxyz019._-"
TOKEN = access_token("name", digest("text"), (Scope.CONSUME,), "*", T0)


def token(**changes) -> AccessToken:
    return msgspec.structs.replace(TOKEN, **changes)


def test_no_answer_can_have_the_digest_of_a_token():
    with pytest.raises(TypeError, match="Digest"):
        msgspec.json.encode(TOKEN)
    assert b"digest" not in msgspec.json.encode(token_info(TOKEN, T0))


def test_what_a_glob_covers():
    globs: list[tuple[str, list[str], list[str]]] = [
        ("*", ["orders", "orders-dlq", "a", "."], []),
        ("orders", ["orders"], ["orders-dlq", "Orders", "order", "orders2", "my-orders"]),
        ("orders*", ["orders", "orders-dlq", "orders.eu"], ["my-orders", "order"]),
        ("*-dlq", ["orders-dlq", "-dlq"], ["orders", "orders-dlq2"]),
        (
            "tenant-?.mail",
            ["tenant-1.mail", "tenant-x.mail"],
            ["tenant-10.mail", "tenant-.mail", "tenant-1xmail"],
        ),
        ("shard-[0-3]", ["shard-0", "shard-3"], ["shard-4", "shard-", "shard-00"]),
        ("shard-[!0-3]", ["shard-4", "shard-x"], ["shard-0", "shard-"]),
        ("[", ["["], ["a", ""]),
        ("[]", [], ["a", ""]),
        ("a**b", ["ab", "axb"], ["a", "b"]),
    ]
    for queues, covered, not_covered in globs:
        assert [queue for queue in covered if not token(queues=queues).covers(queue)] == []
        assert [queue for queue in not_covered if token(queues=queues).covers(queue)] == []


@given(st.text(NAME_CHARACTERS + "*?[]!", min_size=1, max_size=256), st.text(NAME_CHARACTERS, max_size=64))
def test_any_glob_that_may_be_stored_can_be_asked(queues: str, queue: str):
    assert check_token(token(queues=queues)).covers(queue) in (True, False)


@given(st.text(NAME_CHARACTERS, min_size=1, max_size=64), st.text(NAME_CHARACTERS, max_size=64))
def test_a_glob_without_wildcards_covers_its_namesake_only(queues: str, queue: str):
    assert token(queues=queues).covers(queues)
    assert token(queues=queues).covers(queue) == (queue == queues)


def test_admin_includes_all_other_scopes_and_no_other_does():
    for scope in Scope:
        allowed = {wanted for wanted in Scope if token(scopes=(scope,)).allows(wanted)}
        assert allowed == (set(Scope) if scope is Scope.ADMIN else {scope})


def test_a_token_ends_at_the_very_millisecond():
    assert not token(expires_at=T0).expired(T0 - 1)
    assert token(expires_at=T0).expired(T0)
    assert not token().expired(2**62)


def test_a_principal_needs_scope_and_queue():
    principal = Principal(token(scopes=(Scope.CONSUME, Scope.BROWSE), queues="a*"))
    principal.check(Scope.CONSUME, "ab")
    principal.check_somewhere(Scope.BROWSE)
    assert principal.may(Scope.BROWSE, "a")
    for scope, queue in [(Scope.CONSUME, "b"), (Scope.PRODUCE, "a"), (Scope.CONSUME, None)]:
        with pytest.raises(Forbidden) as raised:
            principal.check(scope, queue)
        where = "all queues" if queue is None else "this queue"
        assert str(raised.value) == f"the token has not the scope {scope.value} for {where}"
    with pytest.raises(Forbidden):
        principal.check_somewhere(Scope.PRODUCE)
    assert not principal.may(Scope.PRODUCE, "a")


def test_what_is_about_no_queue_needs_all_of_them():
    Principal(token(scopes=(Scope.ADMIN,))).check(Scope.REDRIVE)
    with pytest.raises(Forbidden):
        Principal(token(scopes=(Scope.ADMIN,), queues="**")).check(Scope.ADMIN)


def test_the_holder_of_the_secret_may_do_all():
    for scope in Scope:
        EVERYBODY.check(scope, "q")
        EVERYBODY.check(scope)
        EVERYBODY.check_somewhere(scope)
        assert EVERYBODY.may(scope, "q")


def test_names_that_may_be():
    for name in ("a", "A.b_c-9", "x" * 64, "...", "-", ".a"):
        assert check_token(token(name=name)).name == name


def test_names_that_may_not_be():
    for name in ("", "x" * 65, "a b", "a/b", "ä", "a\n", ".", "..", "a*"):
        assert not is_token_name(name)
        with pytest.raises(InvalidToken) as raised:
            check_token(token(name=name))
        assert raised.value.field == "name"


LIFE_MS = limits.TOKEN_LIFE_DAYS_MAX * limits.DAY_MS


def test_what_a_token_may_not_be_like():
    for changes, member in (
        ({"scopes": ()}, "scopes"),
        ({"queues": ""}, "queues"),
        ({"queues": "a b"}, "queues"),
        ({"queues": "a/b"}, "queues"),
        ({"queues": "{a,b}"}, "queues"),
        ({"queues": "*\n"}, "queues"),
        ({"queues": "*" * 257}, "queues"),
        ({"expires_at": T0}, "expires_at"),
        ({"expires_at": T0 - 1}, "expires_at"),
        ({"expires_at": -1}, "expires_at"),
        ({"expires_at": T0 + LIFE_MS + 1}, "expires_at"),
    ):
        with pytest.raises(InvalidToken, match=re.escape(member)) as raised:
            check_token(token(**changes))
        assert raised.value.field == member


def test_what_it_may_be_like_at_the_most():
    check_token(token(queues="*" * 256))
    for expires_at in (T0 + 1, T0 + LIFE_MS, None):
        check_token(token(expires_at=expires_at))


def test_texts_are_random_and_their_hashes_are_those_of_anybodys_sha256():
    texts = {new_token_text() for _ in range(100)}
    assert len(texts) == 100
    assert all(re.fullmatch(r"forq_[A-Za-z0-9_-]{43}", text) for text in texts)
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
