"""The error table knows every error of the queue, and every code is one of the documented table (contract F9)."""

import re
from pathlib import Path

import msgspec
import pytest

import forq_trio.http
from forq_trio.http.errors import (
    ForeignSite,
    HttpError,
    LockedOut,
    MethodNotAllowed,
    PathNotFound,
    Unauthorized,
    UnknownEncoding,
    UnknownParameter,
)
from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.refusals import TRANSPORT_CODES, Refused, answer, transport_answer
from forq_trio.model import errors
from forq_trio.model.forq_error import REASONS
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings, OutcomeLost
from oracle.engine import MemoryEngine
from support.actors import ObservedEngine
from support.forq_api import ASKING_FOR_MORE, blamed, json_of, make_request, open_api

REQUEST = make_request("POST", "/", body=b"{}")
BASES = {errors.ForqError, errors.CallerError, errors.ServiceError, errors.NotFound}
OF_CLIENTS = {
    errors.ClientClosed,
    errors.InvalidSecret,
    errors.InvalidServerUrl,
    errors.WrongKey,
    errors.TooManyWrongKeys,
    errors.ForqUnreachable,
    errors.ForqProtocolError,
}
"""Errors that only clients raise; wrong keys are HTTP's own to the server."""
CLASSES = {
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.ForqError)
} - {*BASES, *OF_CLIENTS, errors.StorageOpenError}
ANSWERS_THAT_SAY_MORE = {
    errors.Forbidden("no"): (403, {"code": "forbidden", "message": "no"}),
    errors.InvalidSetting("ttlMs: too long", field="ttlMs"): (
        400,
        {"code": "bad_request.settings.ttlMs", "field": "$.ttlMs", "message": "ttlMs: too long"},
    ),
    errors.InvalidToken("name: too long", field="name"): (
        400,
        {"code": "bad_request.token.name", "field": "$.name", "message": "name: too long"},
    ),
}


HTTP_ANSWERS = {
    Unauthorized(): (401, "unauthorized", ()),
    LockedOut(0.5): (429, "too_many_requests", ((b"retry-after", b"1"),)),
    ForeignSite(): (403, "forbidden", ()),
    PathNotFound(): (404, "not_found.path", ()),
    MethodNotAllowed(b"GET"): (405, "method_not_allowed", ((b"allow", b"GET"),)),
    UnknownParameter("x", ["y"]): (400, "bad_request.query.unknown_parameter", ()),
    UnknownEncoding(): (415, "bad_request.content_encoding.unknown", ((b"accept-encoding", b"identity"),)),
}


def test_f9_what_http_refuses():
    for error, answered in HTTP_ANSWERS.items():
        response = answer_error(error, REQUEST)
        code = blamed(json_of(response))["code"]
        assert (response.status, code, response.headers) == answered


def test_f9_the_table_of_what_http_refuses_is_exhaustive():
    assert set(HttpError.__subclasses__()) == set(map(type, HTTP_ANSWERS))


def test_f9_what_the_transport_refuses():
    for status in TRANSPORT_CODES:
        own = transport_answer(status, "POST", "/api/v1/queues/q/messages/batch", {})
        unknown = transport_answer(status, "", "", {})
        forqs = transport_answer(status, "POST", "/api/v1/queues/q/messages", {})
        code = TRANSPORT_CODES[status][0]
        retry = ((b"retry-after", b"1"),) if status == 503 else ()
        assert own.status == forqs.status == status
        assert blamed(json_of(own)) == {"code": code}
        assert (unknown.body, unknown.headers) == (own.body, own.headers) == (own.body, retry)
        assert json_of(forqs) == {"code": code}
        assert dict(forqs.headers)[b"x-forq-error-message"].decode() == json_of(own)["message"]


def test_f9_answers_that_say_more():
    for error, answered in ANSWERS_THAT_SAY_MORE.items():
        response = answer_error(error, REQUEST)
        assert (response.status, msgspec.json.decode(response.body)) == answered


def test_f9_members_that_have_codes_of_their_own():
    for kind in filter(lambda kind: issubclass(kind, errors.CallerError), CLASSES):
        for field, (code, _, _) in kind.members.items():
            answered = json_of(answer_error(kind(field=field), REQUEST))
            assert (answered["code"], answered["field"]) == (code, f"$.{field}")
        other = json_of(answer_error(kind(field="anotherOne"), REQUEST))
        assert (other["code"], other["field"]) == (kind.code, "$.anotherOne")


def test_every_setting_that_has_a_range_has_a_code():
    of_choices = {"expiry", "overflow", "order", "groupOrder"}
    assert errors.InvalidSetting.members.keys() == set(SettingsChange.__struct_encode_fields__) - of_choices


def test_f9_answers():
    """What the caller did wrong is told in the error's words; what failed in the server is for its log."""
    for error in CLASSES:
        response = answer_error(error("some detail"), REQUEST)
        body = json_of(response)
        assert (response.status, blamed(body)["code"]) == (error.status, error.code)
        assert (body["message"] == "some detail") == error.message_for_callers, error
        assert response.headers == (((b"retry-after", b"1"),) if response.status == 503 else ()), error


def test_f9_an_unknown_error_is_raised():
    for error in (errors.ForqError, errors.CallerError, errors.ServiceError, KeyError, ValueError):
        with pytest.raises(error, match="detail"):
            answer_error(error("detail"), REQUEST)


def test_f9_callers_faults_are_4xx_and_ours_5xx():
    for error in CLASSES:
        for code in (error.code, *(reason.code for reason in error.members.values())):
            assert REASONS[code].status // 100 == (4 if error.message_for_callers else 5)


def test_f9_the_reason_of_every_code():
    for code, reason in REASONS.items():
        assert answer(Refused(reason)).status == reason.status
        assert blamed(json_of(answer(Refused(reason)))) == {"code": code}
        assert re.fullmatch(r"[A-Za-z_]+(\.[A-Za-z_]+)*", code)
        assert reason.meaning.endswith(".")


def test_f9_two_errors_have_no_code_in_common():
    with pytest.raises(TypeError, match=r"two errors have the code forq\.queue_full"):
        type("Another", (errors.ServiceError,), {}, code="forq.queue_full")


def test_f9_no_code_is_spelled_out_anywhere_else():
    for path in Path(forq_trio.http.__file__).parent.glob("**/*.py"):
        for code in REASONS:
            assert f'"{code}"' not in path.read_text(), f"{path.name} spells out {code}"


async def test_a_commit_that_may_or_may_not_be_stored_is_nothing_to_repeat():
    """503 would say that the request may be repeated; and it is not the fault of this server's program."""

    def lose() -> None:
        engine.before_commit = lambda: None
        raise OutcomeLost

    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with open_api(engine) as api:
        for headers in (None, ASKING_FOR_MORE):
            engine.before_commit = lose
            answer = await api.call("POST", "q/messages", {"content": "x"}, headers)
            assert (answer.status, json_of(answer)["code"]) == (500, "forq.outcome_unknown")
            assert b"retry-after" not in dict(answer.headers)
        await api.send("y")
