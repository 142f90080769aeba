"""What is set for a queue: kept member by member, in force at once, nothing stored where nothing is set."""

from forq_trio.model import limits
from forq_trio.model.commands import Configure, Produce
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.queues.settings import QueueSettings, SettingsChange, rules_of
from forq_trio.model.sqs.policies import POLICY, labels_of
from forq_trio.model.sqs.types import SqsChange, SqsDetails
from forq_trio.storage.engine import Batch, EngineSettings
from support.settings import EVERYTHING

from .script import T0, claim, configure, do, pause, receive, receive_one, run, send


def test_every_setting_is_kept_and_in_force(engine):
    assert configure(engine, **EVERYTHING) == QueueSettings(**EVERYTHING)
    assert engine.snapshot().settings == {"q": QueueSettings(**EVERYTHING)}
    rules = engine.snapshot().rules("q")
    assert {name: getattr(rules, name) for name in EVERYTHING} == EVERYTHING
    assert set(EVERYTHING) == set(SettingsChange.__struct_fields__)


def test_a_queue_without_settings_has_the_defaults(make_engine):
    defaults = EngineSettings(queue_ttl_ms=1, dlq_ttl_ms=2, attempts_max=3, backoff_ms=(4,))
    engine = make_engine(defaults)
    for queue in ("q", "q-dlq", "q_lifo"):
        assert engine.snapshot().rules(queue) == rules_of(queue, None, defaults)
    assert engine.snapshot().settings == {}


def test_members_that_are_not_named_stay(engine):
    configure(engine, lease_ms=1, max_messages=2)
    assert configure(engine, max_messages=3) == QueueSettings(lease_ms=1, max_messages=3)


def test_null_goes_back_to_the_default(engine):
    configure(engine, lease_ms=1, ttl_ms=2)
    assert configure(engine, lease_ms=None) == QueueSettings(ttl_ms=2)
    assert engine.snapshot().rules("q").lease_ms == rules_of("q", None, EngineSettings()).lease_ms


def test_when_nothing_is_set_any_more_nothing_is_kept(engine):
    configure(engine, lease_ms=1)
    assert configure(engine, lease_ms=None) == QueueSettings()
    assert engine.snapshot().settings == {}
    configure(engine, lease_ms=1)
    assert do(engine, Configure("q", None)) == QueueSettings()
    assert engine.snapshot().settings == {}


def test_what_sqs_says_of_a_queue_is_no_setting(engine):
    do(engine, Configure("q", SettingsChange(lease_ms=1), SqsChange(full_name="", at_ms=1, tags={"a": "b"})))
    details = SqsDetails(created_at=1, modified_at=1, tags={"a": "b"})
    assert do(engine, Configure("q", None)) == QueueSettings(sqs=details)
    assert engine.snapshot().settings == {"q": QueueSettings(sqs=details)}


def test_a_queue_of_which_sqs_says_something_exists_from_then_on(engine, reader):
    do(engine, Configure("q", SettingsChange(), SqsChange(full_name="", at_ms=1)))
    assert engine.snapshot().queue_names == ["q"]
    assert reader.queues().keys() == {"q"}


def test_two_changes_of_what_sqs_says_are_both_done(engine):
    changes = [
        SqsChange(
            full_name="long", at_ms=1, tags={"a": "1", "b": "2"}, attributes={"Policy": "{}", "X": "1"}
        ),
        SqsChange(full_name="long", at_ms=2, tags={"c": "3"}, untagged=frozenset("b"), attributes={"X": ""}),
    ]
    run(engine, *(Configure("q", SettingsChange(), change) for change in changes))
    assert engine.snapshot().settings["q"].sqs == SqsDetails(
        full_name="long", created_at=1, modified_at=2, tags={"a": "1", "c": "3"}, attributes={"Policy": "{}"}
    )


def permit(label, statement=()):
    """Add a permission, or (None) remove it."""
    made = None if statement is None else {"Sid": label, "Effect": "Allow"}
    change = SqsChange(full_name="", at_ms=1, statements={label: made}, policy_id="one")
    return Configure("q", SettingsChange(), change)


def labels(engine):
    details = engine.snapshot().settings["q"].sqs
    return labels_of(details.attributes.get(POLICY, ""))


def test_two_permissions_at_once_are_both_in_the_policy(engine):
    run(engine, permit("a"), permit("b"))
    assert labels(engine) == {"a", "b"}
    run(engine, permit("a", None), permit("c"))
    assert labels(engine) == {"b", "c"}
    run(engine, permit("b", None), permit("c", None))
    assert engine.snapshot().settings["q"].sqs.attributes == {}


def test_a_policy_and_tags_have_bounds_however_many_changes_come_at_once(engine):
    changes = [permit(f"{number}" * 80) for number in range(limits.SQS_ATTRIBUTE_BYTES_MAX // 80)]
    outcomes = run(engine, *changes).outcomes
    refused = [outcome for outcome in outcomes if isinstance(outcome, InvalidSetting)]
    assert 0 < len(refused) < len(outcomes)
    assert len(labels(engine)) == len(outcomes) - len(refused)
    many = [{f"{first}{number}": "" for number in range(limits.SQS_TAGS_MAX)} for first in "ab"]
    tagged = [Configure("q", SettingsChange(), SqsChange(full_name="", at_ms=1, tags=tags)) for tags in many]
    _, second = run(engine, *tagged).outcomes
    assert isinstance(second, InvalidSetting)
    assert engine.snapshot().settings["q"].sqs.tags == many[0]


def test_no_change_is_none(engine):
    assert configure(engine) == QueueSettings()
    assert engine.snapshot().settings == {}


def test_queues_do_not_mix(engine):
    configure(engine, "a", lease_ms=1)
    configure(engine, "A", lease_ms=2)
    assert [engine.snapshot().rules(queue).lease_ms for queue in ("a", "A")] == [1, 2]


def test_setting_makes_no_queue(engine):
    configure(engine, **EVERYTHING)
    assert engine.snapshot().counts == {}
    assert engine.open_reader().queues() == {}


def test_they_are_in_force_for_the_rest_of_the_batch(engine):
    change = SettingsChange(lease_ms=5, delay_ms=None)
    configure(engine, delay_ms=50)
    _, _, deliveries = run(
        engine, Produce("q", NewMessage("x")), Configure("q", change), claim(lease_ms=None)
    ).outcomes
    assert [delivery.lease_until for delivery in deliveries] == [T0 + 5]


def test_several_of_a_batch_add_up_in_their_order(engine):
    outcomes = run(
        engine,
        Configure("q", SettingsChange(lease_ms=1, ttl_ms=1)),
        Configure("q", SettingsChange(lease_ms=2)),
    ).outcomes
    assert outcomes == [QueueSettings(lease_ms=1, ttl_ms=1), QueueSettings(lease_ms=2, ttl_ms=1)]


def test_only_what_is_committed_is_told(engine):
    configure(engine, lease_ms=1)
    engine.execute_batch(Batch([Configure("q", SettingsChange(lease_ms=2))], T0))
    assert engine.snapshot().settings == {"q": QueueSettings(lease_ms=1)}
    assert engine.snapshot().rules("q").lease_ms == 1
    engine.commit()
    assert engine.snapshot().rules("q").lease_ms == 2


def test_a_lease_of_the_queue_is_for_claims_that_do_not_say(engine):
    configure(engine, lease_ms=70)
    send(engine)
    (delivery,) = receive(engine, lease_ms=None)
    assert delivery.lease_until == T0 + 70
    (delivery,) = receive(engine, lease_ms=5, now=T0 + 70)
    assert delivery.lease_until == T0 + 75


def test_claims_of_one_batch_may_differ(engine):
    configure(engine, lease_ms=70)
    for _ in range(3):
        send(engine)
    outcomes = run(engine, claim(lease_ms=None), claim(lease_ms=5), claim(lease_ms=70)).outcomes
    assert [delivery.lease_until - T0 for (delivery,) in outcomes] == [70, 5, 70]


def test_the_default_lease(engine):
    send(engine)
    assert receive_one(engine, lease_ms=None)[0].lease_until == T0 + 300_000


def test_a_pause_and_settings_do_not_disturb_each_other(engine):
    pause(engine)
    configure(engine, lease_ms=1)
    pause(engine, paused=False)
    assert engine.snapshot().settings == {"q": QueueSettings(lease_ms=1)}
