"""Apps belong to the queues that they write: one version is published once, and nobody uses up another's versions."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, UNKNOWN, Key
from forq_trio.model.commands import EndStages, ForgetApp, Publish, StagePage
from forq_trio.model.errors import AppInUse, StageMissing, StagingFull, TooManyApps
from forq_trio.model.publishing.types import KeyShare, PublishedVersion, Stage
from forq_trio.storage.apps import shares_of_all, shares_with

from .script import DAY_MS, T0, do
from .test_publishing import advance, part

MINE, ALSO_MINE, OTHERS = Key("t", "mine"), Key("u", "mine*"), Key("o", "other*")
names = iter(range(10**6))


def stage(engine, queue="mine", key=SECRET, contents=("x",), name=None):
    name = name or f"s{next(names)}"
    staged = do(engine, StagePage(queue, name, 0, (part(*contents),), key))
    return staged if isinstance(staged, Exception) else Stage(queue, name, 1)


def publish(engine, key, *queues, app="app", version=1, once=False, now=T0):
    """Whether it was published, or the error."""
    stages = tuple(stage(engine, queue, key) for queue in queues)
    outcome = do(engine, Publish(app, version, stages, once, key), now)
    return outcome if isinstance(outcome, Exception) else outcome.published


def shares(engine):
    return dict(engine.snapshot().staging.shares)


@pytest.mark.parametrize("later", [MINE, ALSO_MINE, SECRET, Key("v", "*")], ids=lambda key: key.queues)
@pytest.mark.parametrize("first", [MINE, ALSO_MINE, SECRET], ids=lambda key: key.queues)
def test_a_version_is_published_once_with_whatever_key(engine, first, later):
    assert publish(engine, first, "mine") is True
    assert publish(engine, later, "mine") is False
    assert publish(engine, later, "mine", version=2) is True
    assert publish(engine, first, "mine", version=2) is False
    advance(engine)
    assert engine.snapshot().counts["mine"].ready == 2
    assert engine.snapshot().staging.apps == 1


def test_a_key_that_writes_other_queues_has_an_app_of_its_own(engine, reader):
    """It neither uses up versions of somebody else's, before or after that began, nor learns about it."""
    assert publish(engine, OTHERS, "other", version=limits.SEQUENCE_MAX) is True
    assert publish(engine, MINE, "mine", version=5) is True
    assert publish(engine, SECRET, "mine", version=5) is False
    assert publish(engine, SECRET, "mine", version=6) is True
    assert publish(engine, OTHERS, "other", version=limits.SEQUENCE_MAX) is False
    assert [(app.version, app.made_by, app.queues) for app in reader.apps_named("app")] == [
        (limits.SEQUENCE_MAX, "o", ("other",)),
        (6, "", ("mine",)),
    ]


def test_one_key_has_one_app_for_whatever_queues(engine, reader):
    """A batch of a query that is repeated may have rows for other queues."""
    assert publish(engine, SECRET, "mine") is True
    assert publish(engine, SECRET, "other") is False
    assert publish(engine, SECRET, "other", version=2) is True
    assert reader.apps_named("app") == [PublishedVersion("app", 2, T0, queues=("other", "mine"))]


def test_who_may_not_write_all_queues_of_an_app_uses_up_none_of_its_versions(engine):
    assert publish(engine, SECRET, "mine", "other") is True
    for version in (1, 2):
        assert isinstance(publish(engine, MINE, "mine", version=version), AppInUse)
    assert publish(engine, SECRET, "mine", "other", version=2) is True
    assert do(engine, ForgetApp("app", MINE)) is False
    assert publish(engine, MINE, "mine", app="another") is True


def test_a_version_that_another_key_published_to_some_of_the_queues_is_no_success(engine):
    """It would be taken for published where it never was; an app that goes on is not stopped."""
    assert publish(engine, MINE, "mine", version=5) is True
    assert isinstance(publish(engine, SECRET, "mine", "other", version=5), AppInUse)
    assert publish(engine, SECRET, "mine", version=5) is False
    assert publish(engine, SECRET, "mine", "other", version=6) is True


def test_apps_of_one_name_are_one_once_somebody_writes_the_queues_of_both(engine, reader):
    assert publish(engine, MINE, "mine", version=3) is True
    assert publish(engine, OTHERS, "other", version=4) is True
    assert publish(engine, SECRET, "mine", "other", version=5) is True
    (app,) = reader.apps_named("app")
    assert (app.version, set(app.queues)) == (5, {"mine", "other"})
    advance(engine)
    assert shares(engine) == {"": KeyShare(apps=1)}


def test_the_queues_of_an_app_are_bounded(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "APP_QUEUES_MAX", 2)
    for version, queue in enumerate("abc"):
        assert publish(engine, SECRET, queue, version=version) is True
    assert reader.apps_named("app")[0].queues == ("c", "b")


def test_an_app_that_was_deleted_publishes_again(engine, reader):
    assert publish(engine, MINE, "mine") is True
    assert do(engine, ForgetApp("app", OTHERS)) is False
    assert do(engine, ForgetApp("app", ALSO_MINE)) is True
    assert do(engine, ForgetApp("app")) is False
    assert reader.apps_named("app") == []
    assert publish(engine, SECRET, "mine") is True


def test_apps_are_listed_in_the_order_in_which_they_published(engine, reader):
    for name in "abc":
        publish(engine, SECRET, "mine", app=name)
    publish(engine, SECRET, "mine", app="a", version=2)
    listed = reader.list_apps(0, 2)
    assert [app.app for _, app in listed] == ["b", "c"]
    assert [app.app for _, app in reader.list_apps(listed[-1][0], 2)] == ["a"]


def test_a_key_has_a_share_of_the_apps(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "APPS_A_KEY_MAX", 2)
    assert publish(engine, MINE, "mine", app="a") is True
    assert publish(engine, MINE, "mine", app="job", once=True) is True
    assert publish(engine, MINE, "mine", app="b") is True
    assert reader.apps_named("job") == []
    refused = publish(engine, MINE, "mine", app="c")
    assert isinstance(refused, TooManyApps)
    assert "this key has published as 2 apps" in refused.message
    assert publish(engine, MINE, "mine", app="a", version=2) is True
    assert publish(engine, OTHERS, "other", app="c") is True
    assert publish(engine, SECRET, "mine", app="c") is True
    do(engine, ForgetApp("a", MINE))
    assert publish(engine, MINE, "mine", app="d") is True
    year = limits.APP_LIFE_MS
    assert publish(engine, MINE, "mine", app="e", now=T0 + year) is True
    assert reader.apps_named("b") == []


def test_apps_for_one_job_of_others_stay_while_the_share_of_a_key_is_full(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "APPS_A_KEY_MAX", 1)
    assert publish(engine, OTHERS, "other", app="job", once=True) is True
    assert publish(engine, MINE, "mine", app="a") is True
    assert isinstance(publish(engine, MINE, "mine", app="b", once=True), TooManyApps)
    assert reader.apps_named("job") != []


def test_a_key_has_a_share_of_the_stages_and_its_oldest_empty_one_goes_first(engine, monkeypatch):
    monkeypatch.setattr(limits, "STAGES_A_KEY_MAX", 2)
    empty, full = stage(engine, key=MINE, contents=()), stage(engine, key=MINE)
    third = stage(engine, key=MINE)
    assert do(engine, Publish("a", 1, (third,), key=MINE)).published
    advance(engine)
    assert shares(engine)["t"].stages == 1
    fourth = stage(engine, key=MINE)
    refused = stage(engine, key=MINE)
    assert isinstance(refused, StagingFull)
    assert "of this key wait" in refused.message
    assert isinstance(stage(engine, "other", OTHERS), Stage)
    assert isinstance(do(engine, Publish("b", 1, (empty,), key=MINE)), StageMissing)
    assert do(engine, Publish("b", 1, (full, fourth), key=SECRET)).published
    assert isinstance(stage(engine, key=MINE), Stage)


def test_a_key_has_a_share_of_the_staged_bytes_by_who_began_the_stage(engine, monkeypatch):
    first = stage(engine, key=MINE)
    size = shares(engine)["t"].bytes
    assert size > 0
    monkeypatch.setattr(limits, "STAGED_BYTES_A_KEY_MAX", 2 * size)
    assert not isinstance(do(engine, StagePage("mine", first.stage, 1, (part("y"),), SECRET)), Exception)
    assert shares(engine) == {"t": KeyShare(1, 2 * size, 0)}
    assert isinstance(stage(engine, key=MINE), StagingFull)
    assert isinstance(stage(engine, key=SECRET), Stage)
    assert do(engine, Publish("a", 1, (Stage("mine", first.stage, 2),))).published
    advance(engine)
    assert isinstance(stage(engine, key=MINE), Stage)


def test_a_stage_that_ends_is_no_longer_in_a_share(engine):
    stage(engine, key=MINE)
    assert do(engine, EndStages(), T0 + DAY_MS) == 1
    assert shares(engine)["t"].stages == 0
    advance(engine, T0 + DAY_MS)
    assert shares(engine) == {}


def test_a_start_knows_the_share_of_each_key_with_one_pass():
    """Opening 7,000 keys copied all shares for each, 4 s of processor time in one transaction."""
    stages = [
        ("t", 2, 30),
        ("u", 1, 4),
        (UNKNOWN, 1, 1),
        ("t", 0, 5),
    ]  # those of a key that wait, and that are published
    apps = [("u", 3), ("v", 1), (UNKNOWN, 2)]
    one_by_one = {}
    for name, waiting, size in stages:
        one_by_one = shares_with(one_by_one, name, stages=waiting, size=size)
    for name, count in apps:
        one_by_one = shares_with(one_by_one, name, apps=count)
    assert shares_of_all(iter(stages), iter(apps)) == one_by_one
    assert one_by_one == {"t": KeyShare(2, 35, 0), "u": KeyShare(1, 4, 3), "v": KeyShare(0, 0, 1)}
