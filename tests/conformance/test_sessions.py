"""Sessions of the admin UI: stored by digest, told from memory, ended, and when they were last used."""

from forq_trio.model import limits
from forq_trio.model.access.sessions import UiSession
from forq_trio.model.commands import EndSessions, NoteSessionUse, SaveSession
from forq_trio.storage.engine import Batch

from .script import T0, do, run


def session(digest="a", **fields):
    values = {
        "key_name": "ci",
        "key_digest": "digest of a key",
        "created_at": T0,
        "expires_at": T0 + 100,
        "last_used_at": T0,
        "client": "192.0.2.7",
        "agent": "Größe/1.0",
        **fields,
    }
    return UiSession(digest=digest, **values)


def open_ones(engine):
    return sorted(engine.snapshot().sessions)


def test_a_session_is_kept_as_it_is(engine):
    first, second = session("a"), session("b", key_name=None, last_used_at=T0 + 3)
    assert run(engine, SaveSession(first), SaveSession(second)).outcomes == [None, None]
    assert engine.snapshot().sessions == {"a": first, "b": second}


def test_sessions_end_one_by_one_or_all_at_once(engine):
    run(engine, *(SaveSession(session(digest)) for digest in "abcd"))
    assert do(engine, EndSessions(("a", "none", "a"))) == 1
    assert do(engine, EndSessions(("a",))) == 0
    assert open_ones(engine) == ["b", "c", "d"]
    assert run(engine, EndSessions(("b",)), EndSessions(None), EndSessions(None)).outcomes == [1, 2, 0]
    assert open_ones(engine) == []


def test_expired_ones_go_when_another_is_saved(engine):
    run(engine, SaveSession(session("a", expires_at=T0 + 5)), SaveSession(session("b", expires_at=T0 + 6)))
    run(engine, now=T0 + 9)
    assert open_ones(engine) == ["a", "b"]
    do(engine, SaveSession(session("c")), now=T0 + 5)
    assert open_ones(engine) == ["b", "c"]


def test_beyond_the_bound_the_one_used_longest_ago_ends(engine, monkeypatch):
    monkeypatch.setattr(limits, "SESSIONS_MAX", 3)
    run(engine, *(SaveSession(session(digest, last_used_at=T0 + ord(digest))) for digest in "abc"))
    do(engine, NoteSessionUse({"a": T0 + 1_000}))
    do(engine, SaveSession(session("d", last_used_at=T0)))
    assert open_ones(engine) == ["a", "c", "d"]
    run(engine, *(SaveSession(session(digest, last_used_at=T0 + 2_000)) for digest in "efg"))
    assert open_ones(engine) == ["e", "f", "g"]


def test_expired_ones_go_before_others_that_were_used_longer_ago(engine, monkeypatch):
    monkeypatch.setattr(limits, "SESSIONS_MAX", 2)
    run(engine, SaveSession(session("a", expires_at=T0 + 5, last_used_at=T0 + 4)), SaveSession(session("b")))
    do(engine, SaveSession(session("c")), now=T0 + 6)
    assert open_ones(engine) == ["b", "c"]


def test_its_use_is_noted_and_only_moves_forward(engine):
    run(engine, SaveSession(session("a")), SaveSession(session("b")))
    used = []
    for at in (T0 + 5, T0 + 3, T0 + 9):
        assert do(engine, NoteSessionUse({"a": at, "ended": at})) is None
        used.append(engine.snapshot().sessions["a"].last_used_at)
    assert used == [T0 + 5, T0 + 5, T0 + 9]
    assert engine.snapshot().sessions["b"] == session("b")
    assert open_ones(engine) == ["a", "b"]


def test_only_what_is_committed_is_told(engine):
    engine.execute_batch(Batch([SaveSession(session())], T0))
    assert engine.snapshot().sessions == {}
    engine.commit()
    assert engine.snapshot().sessions == {"a": session()}


def test_what_was_told_can_be_walked_through_while_it_changes(engine):
    do(engine, SaveSession(session("a")))
    walk = iter(engine.snapshot().sessions)
    do(engine, SaveSession(session("b")))
    assert list(walk) == ["a"]
