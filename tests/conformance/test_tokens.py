"""Access tokens: stored by name, told from memory, and when they were last used."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.commands import NoteTokenUse, RevokeToken, SaveToken
from forq_trio.model.errors import TokenExists, TooManyTokens
from forq_trio.storage.engine import Batch
from support.access import access_token

from .script import T0, do, run


def token(name="ci", **fields):
    values = {
        "digest": f"digest of {name}",
        "scopes": (Scope.PRODUCE, Scope.REDRIVE),
        "queues": "mail-*",
        "created_at": T0,
        **fields,
    }
    return access_token(name=name, **values)


@pytest.mark.parametrize("stored", [token(), token(expires_at=T0 + 5, last_used_at=T0 + 1), token(scopes=())])
def test_a_token_is_kept_as_it_is(engine, stored):
    assert do(engine, SaveToken(stored)) is None
    assert engine.snapshot().tokens == {"ci": stored}


def test_a_name_is_taken_until_it_is_revoked(engine):
    do(engine, SaveToken(token()))
    assert isinstance(do(engine, SaveToken(token(queues="*", digest="another"))), TokenExists)
    assert engine.snapshot().tokens == {"ci": token()}
    assert do(engine, RevokeToken("ci")) is True
    assert do(engine, RevokeToken("ci")) is False
    assert engine.snapshot().tokens == {}
    do(engine, SaveToken(token(queues="*")))
    assert engine.snapshot().tokens["ci"].queues == "*"


def test_of_two_of_one_name_in_a_batch_the_first_is_stored(engine):
    first, second, other = run(
        engine, SaveToken(token()), SaveToken(token(digest="another")), SaveToken(token("other"))
    ).outcomes
    assert (first, other) == (None, None)
    assert isinstance(second, TokenExists)
    assert engine.snapshot().tokens == {"ci": token(), "other": token("other")}


def test_there_is_a_bound(engine, monkeypatch):
    monkeypatch.setattr(limits, "TOKENS_MAX", 2)
    for name in "ab":
        do(engine, SaveToken(token(name)))
    assert isinstance(do(engine, SaveToken(token("c"))), TooManyTokens)
    assert isinstance(do(engine, SaveToken(token("a", digest="another"))), TokenExists)
    do(engine, RevokeToken("a"))
    assert do(engine, SaveToken(token("c"))) is None


def test_where_all_places_are_taken_the_token_that_expired_longest_ago_leaves(engine, monkeypatch):
    """Tokens that a build makes anew each hour would use up all places in six weeks, and no restart would help."""
    monkeypatch.setattr(limits, "TOKENS_MAX", 3)
    for name, expires_at in (("a", T0 + 2), ("b", T0 + 1), ("c", None)):
        do(engine, SaveToken(token(name, expires_at=expires_at)))
    assert isinstance(do(engine, SaveToken(token("d")), T0), TooManyTokens)
    assert isinstance(do(engine, SaveToken(token("a", digest="another")), T0 + 5), TokenExists)
    assert do(engine, SaveToken(token("d")), T0 + 5) is None
    assert set(engine.snapshot().tokens) == {"a", "c", "d"}
    results = run(engine, SaveToken(token("e")), SaveToken(token("f")), now=T0 + 5).outcomes
    assert results[0] is None
    assert isinstance(results[1], TooManyTokens)
    assert set(engine.snapshot().tokens) == {"c", "d", "e"}
    assert do(engine, RevokeToken("a"), T0 + 5) is False


def test_its_use_is_noted_and_only_moves_forward(engine):
    for name in "ab":
        do(engine, SaveToken(token(name)))
    used = []
    for at in (T0 + 5, T0 + 3, T0 + 9):
        assert do(engine, NoteTokenUse({"a": at, "gone": at})) is None
        used.append(engine.snapshot().tokens["a"].last_used_at)
    assert used == [T0 + 5, T0 + 5, T0 + 9]
    assert engine.snapshot().tokens["b"].last_used_at is None
    assert set(engine.snapshot().tokens) == {"a", "b"}


def test_a_use_is_noted_of_a_token_of_the_same_batch(engine):
    run(engine, NoteTokenUse({"ci": T0 + 5}), SaveToken(token()))
    assert engine.snapshot().tokens["ci"].last_used_at == T0 + 5


def test_only_what_is_committed_is_told(engine):
    engine.execute_batch(Batch([SaveToken(token())], T0))
    assert engine.snapshot().tokens == {}
    engine.commit()
    assert engine.snapshot().tokens == {"ci": token()}
