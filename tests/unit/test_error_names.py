"""Errors call a member by its name in Python, and the API's answers by its name in JSON."""

import pytest

from forq_trio.model.errors import CallerError, InvalidSetting, OutOfRange, error_of
from forq_trio.model.member_names import python_path
from forq_trio.model.queues.setting_checks import invalid_setting, read_change


@pytest.mark.parametrize(
    ("path", "in_python"),
    [
        ("leaseMs", "lease_ms"),
        ("lines[1].processAfter", "lines[1].process_after"),
        ("filter.minAgeMs", "filter.min_age_ms"),
        ("X-Forq-Receipt", "X-Forq-Receipt"),
        ("queue", "queue"),
        ("max", "max_messages"),
        ("A-myName", "A-myName"),
    ],
)
def test_a_path_has_the_names_of_python(path: str, in_python: str) -> None:
    assert python_path(path) == in_python


def test_an_error_has_both_names_and_tells_that_of_python() -> None:
    error = OutOfRange("lease_ms must be between 0 and 9, not 10", field="leaseMs")
    assert (error.field, error.member, error.code) == (
        "lease_ms",
        "leaseMs",
        "bad_request.leaseMs.out_of_range",
    )
    assert str(error) == "lease_ms must be between 0 and 9, not 10"
    assert error.api_message == "leaseMs must be between 0 and 9, not 10"
    assert CallerError("no").api_message == "no"


@pytest.mark.parametrize(
    ("member", "problem", "in_python", "in_json"),
    [
        ("leaseMs", "it must be 1", "lease_ms: it must be 1", "leaseMs: it must be 1"),
        ("backOff", "initial_ms must be 1", "back_off: initial_ms must be 1", "backOff: initialMs must be 1"),
        ("rate", "period_ms must be 1", "rate: period_ms must be 1", "rate: periodMs must be 1"),
        (
            "deadLetterQueue",
            "dead letters of my_own_ms would come back to my_q",
            "dead_letter_queue: dead letters of my_own_ms would come back to my_q",
            "deadLetterQueue: dead letters of my_own_ms would come back to my_q",
        ),
    ],
)
def test_so_has_an_error_about_a_setting_or_a_member_of_it(
    member: str, problem: str, in_python: str, in_json: str
) -> None:
    error = invalid_setting(member, problem)
    assert (str(error), error.api_message) == (in_python, in_json)
    back = error_of(error.code, field=f"$.{member}", message=error.api_message)
    assert (type(back), str(back), back.field) == (InvalidSetting, in_python, error.field)


def test_a_client_tells_the_names_of_python() -> None:
    words = "messages[0].delayMs must be an integer, not text"
    error = error_of("bad_request.body.invalid", field="$.messages[0].delayMs", message=words)
    assert str(error) == "messages[0].delay_ms must be an integer, not text"
    assert error.field == "messages[0].delay_ms"
    assert (
        str(error_of("bad_request.body.invalid", message="the body is not JSON: aB"))
        == "the body is not JSON: aB"
    )


def test_a_setting_that_is_given_as_a_dict_has_the_names_of_python() -> None:
    change = read_change({"rate": {"count": 2, "period_ms": 5}, "back_off": {"initial_ms": 3}})  # type: ignore
    assert (change.rate.count, change.rate.period_ms, change.back_off.initial_ms) == (2, 5, 3)
    assert read_change({"rate": {"count": 2, "periodMs": 5}}).rate.period_ms == 5  # type: ignore
