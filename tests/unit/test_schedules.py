"""A schedule has the options of a message, as those are declared."""

import msgspec
import pytest

from forq_trio.model.errors import InvalidSchedule
from forq_trio.model.messages.new_message import OPTIONS, NewMessage
from forq_trio.model.schedules.types import NO_OPTIONS, NewSchedule, Schedule, Timing, check_schedule_name


def types_of(struct):
    return {field.name: field.type for field in msgspec.inspect.type_info(struct).fields}


def test_a_schedule_has_each_option_of_a_message_but_those_of_time_and_deduplication():
    options = {name: kind for name, kind in types_of(NewMessage).items() if name in OPTIONS}
    assert set(NO_OPTIONS) < set(options)
    mine = types_of(NewSchedule)
    assert {name: mine[name] for name in options if name in mine} == {
        name: kind for name, kind in options.items() if name not in NO_OPTIONS
    }


def test_the_message_of_a_schedule_has_its_content_and_options():
    new = NewSchedule(queue="q", content="c", every="1h", priority=3, attributes={"a": "b"}, ttl_ms=5)
    assert new.message == NewMessage("c", priority=3, attributes={"a": "b"}, ttl_ms=5)
    assert new.timing == Timing(every="1h")


def test_an_unknown_member_is_refused_in_a_new_schedule_and_ignored_in_one_that_a_server_answers():
    body = b'{"queue": "q", "content": "c", "cron": "@daily", "x": 1%s}'
    with pytest.raises(msgspec.ValidationError, match="x"):
        msgspec.json.decode(body % b"", type=NewSchedule)
    found = msgspec.json.decode(body % b', "name": "n", "madeAt": 1, "updatedAt": 2', type=Schedule)
    assert (found.name, found.cron, found.paused) == ("n", "@daily", False)


def test_durations_are_read_and_a_wrong_one_names_its_member():
    assert (Timing(every="1h30m").every_ms, Timing(jitter="90s").jitter_ms, Timing().jitter_ms) == (
        5_400_000,
        90_000,
        0,
    )
    with pytest.raises(InvalidSchedule) as caught:
        assert Timing(every="5").every_ms
    assert (caught.value.field, caught.value.code) == ("every", "bad_request.every.invalid")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 128])
def test_a_name_is_up_to_128_characters(name):
    assert check_schedule_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 129, "a b", "a/b", "é", "a\n", "a\0"])
def test_another_name_is_refused(name):
    with pytest.raises(InvalidSchedule) as caught:
        check_schedule_name(name)
    assert caught.value.code == "bad_request.schedule.invalid_name"
