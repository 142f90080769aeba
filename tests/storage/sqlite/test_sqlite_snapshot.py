"""What is cached of settings and tokens can be walked through while a commit in a thread changes it."""

from forq_trio.model.access.types import AccessToken, Scope
from forq_trio.model.commands import Configure, SaveToken
from forq_trio.model.queues.settings import SettingsChange
from support.access import access_token
from support.actors import T0
from support.batches import do


def token(name: str) -> AccessToken:
    return access_token(name, f"digest of {name}", (Scope.BROWSE,), "*", T0, None, None)


def test_settings_are_replaced_by_a_commit(engine) -> None:
    do(engine, Configure("a", SettingsChange(lease_ms=1)))
    walk = iter(engine.snapshot().settings.items())
    do(engine, Configure("b", SettingsChange(lease_ms=2)))
    do(engine, Configure("a", None))
    assert [(queue, settings.lease_ms) for queue, settings in walk] == [("a", 1)]
    assert list(engine.snapshot().settings) == ["b"]


def test_tokens_are_replaced_by_a_commit(engine) -> None:
    do(engine, SaveToken(token("a")))
    walk = iter(engine.snapshot().tokens)
    do(engine, SaveToken(token("b")))
    assert list(walk) == ["a"]
    assert sorted(engine.snapshot().tokens) == ["a", "b"]
