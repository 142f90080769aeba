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
from forq_trio.http.forq_api import codes
from forq_trio.http.forq_api.codes import (
    CODES,
    SETTING_INVALID,
    TOKEN_INVALID,
    TRANSPORT_CODES,
)
from forq_trio.http.forq_api.errors import CODE_BY_HTTP_ERROR, answer_error
from forq_trio.http.forq_api.refusals import Refused, answer, transport_answer
from forq_trio.model import errors
from forq_trio.model.queue_settings import SettingsChange
from support.forq_api import blamed, json_of, make_request

REQUEST = make_request("POST", "/", body=b"{}")
BASES = {errors.ForqError, errors.CallerError, errors.ServiceError, errors.NotFound}
OF_CLIENTS = {
    errors.ClientClosed,
    errors.WrongKey,
    errors.TooManyWrongKeys,
    errors.ForqUnreachable,
    errors.ForqProtocolError,
}
"""Errors that only clients raise. The first two are HTTP's own to the server."""
CLASSES = {
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, errors.ForqError)
} - {*BASES, *OF_CLIENTS, errors.StorageOpenError}
ANSWERS = {
    errors.InvalidQueueName: (400, "bad_request.queue.invalid_name"),
    errors.ProduceToDeadLetterQueue: (400, "bad_request.queue.produce_to_dlq"),
    errors.ContentTooLarge: (400, "bad_request.body.content.exceeds_limit"),
    errors.InvalidRequest: (400, "bad_request.body.invalid"),
    errors.InvalidContent: (400, "bad_request.body.invalid"),
    errors.ProcessAfterInPast: (400, "bad_request.body.processAfter.in_past"),
    errors.ProcessAfterTooFar: (400, "bad_request.body.processAfter.too_far"),
    errors.MalformedReceipt: (400, "bad_request.receipt.invalid"),
    errors.MalformedMessageId: (400, "bad_request.messageId.invalid"),
    errors.OutOfRange: (400, "bad_request.out_of_range"),
    errors.InvalidAttributes: (400, "bad_request.body.attributes.invalid"),
    errors.DeadLettersOnly: (400, "bad_request.dlq_only_operation"),
    errors.QueueNotFound: (404, "not_found.queue"),
    errors.MessageInFlight: (409, "conflict.message_in_flight"),
    errors.MessageNotFound: (404, "not_found.message"),
    errors.ReceiptNotCurrent: (404, "not_found.message"),
    errors.RedriveNotFound: (404, "not_found.redrive"),
    errors.TokenNotFound: (404, "not_found.token"),
    errors.QueueNotEmpty: (409, "conflict.queue_not_empty"),
    errors.HistoryOff: (409, "forq.history_off"),
    errors.HistoryGone: (410, "forq.history_gone"),
    errors.RedriveStateConflict: (409, "conflict.redrive_state"),
    errors.TokenExists: (409, "conflict.token_exists"),
    errors.EventsOff: (409, "forq.events_off"),
    errors.EventsGone: (410, "forq.events_gone"),
    errors.TooManyTokens: (409, "conflict.too_many_tokens"),
    errors.ConsumerNotFound: (404, "forq.consumer_not_found"),
    errors.ConsumerFenced: (409, "forq.consumer_fenced"),
    errors.LeaseOutOfOrder: (409, "forq.lease_out_of_order"),
    errors.LeaseGone: (410, "forq.lease_gone"),
    errors.TooManyConsumers: (409, "conflict.too_many_consumers"),
    errors.AppInUse: (409, "conflict.app_in_use"),
    errors.LeasesFull: (503, "forq.leases_full"),
    errors.BackupRunning: (409, "conflict.backup_running"),
    errors.BackupImpossible: (409, "conflict.in_memory"),
    errors.CompactionImpossible: (409, "conflict.not_compactable"),
    errors.InvalidName: (400, "bad_request.name.invalid"),
    errors.StageMissing: (409, "forq.stage_missing"),
    errors.PublicationNotFound: (404, "not_found.publication"),
    errors.StagingFull: (503, "forq.staging_full"),
    errors.Overloaded: (503, "forq.overloaded"),
    errors.QueueFull: (503, "forq.queue_full"),
    errors.PublicationUnfinished: (504, "forq.publication_unfinished"),
    errors.TooManyApps: (503, "forq.too_many_apps"),
    errors.TooManyRedrives: (503, "forq.too_many_redrives"),
    errors.Stopping: (503, "forq.stopping"),
    errors.StorageUnavailable: (503, "forq.unhealthy"),
    errors.StorageFull: (503, "forq.storage_full"),
    errors.StorageLost: (503, "forq.storage_lost"),
    errors.CommandRefused: (503, "forq.unhealthy"),
    errors.OutcomeUnknown: (500, "internal"),
    errors.ReadDeadlineExceeded: (503, "forq.read_timeout"),
}

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


@pytest.mark.parametrize(("error", "answer"), HTTP_ANSWERS.items(), ids=lambda each: type(each).__name__)
def test_f9_what_http_refuses(error: HttpError, answer: tuple[int, str, tuple[object, ...]]):
    response = answer_error(error, REQUEST)
    code = blamed(json_of(response))["code"]
    assert (response.status, code, response.headers) == answer


def test_f9_the_table_of_what_http_refuses_is_exhaustive():
    assert CODE_BY_HTTP_ERROR.keys() == set(HttpError.__subclasses__()) == set(map(type, HTTP_ANSWERS))


@pytest.mark.parametrize("status", TRANSPORT_CODES)
def test_f9_what_the_transport_refuses(status: int):
    own = transport_answer(status, "POST", "/api/v1/queues/q/messages/batch")
    unknown = transport_answer(status, "", "")
    forqs = transport_answer(status, "POST", "/api/v1/queues/q/messages")
    code = TRANSPORT_CODES[status][0]
    retry = ((b"retry-after", b"1"),) if status == 503 else ()
    assert own.status == forqs.status == status
    assert blamed(json_of(own)) == {"code": code}
    assert (unknown.body, unknown.headers) == (own.body, own.headers) == (own.body, retry)
    assert json_of(forqs) == {"code": code}
    assert dict(forqs.headers)[b"x-forq-error-message"].decode() == json_of(own)["message"]


def test_f9_the_table_is_exhaustive():
    assert ANSWERS.keys() | set(map(type, ANSWERS_THAT_SAY_MORE)) == CLASSES


@pytest.mark.parametrize(("error", "answer"), ANSWERS_THAT_SAY_MORE.items())
def test_f9_answers_that_say_more(error: errors.ForqError, answer: tuple[int, dict[str, str]]):
    response = answer_error(error, REQUEST)
    assert (response.status, msgspec.json.decode(response.body)) == answer


def test_f9_members_that_have_codes_of_their_own():
    for kind in filter(lambda kind: issubclass(kind, errors.CallerError), CLASSES):
        for field, code in kind.field_codes.items():
            answered = json_of(answer_error(kind(field=field), REQUEST))
            assert (answered["code"], answered["field"]) == (code, f"$.{field}")
        other = json_of(answer_error(kind(field="anotherOne"), REQUEST))
        assert (other["code"], other["field"]) == (kind.code, "$.anotherOne")


def test_every_setting_that_has_a_range_has_a_code():
    of_choices = {"overflow", "order"}
    assert errors.InvalidSetting.field_codes == SETTING_INVALID
    assert errors.InvalidToken.field_codes == TOKEN_INVALID
    assert SETTING_INVALID.keys() == set(SettingsChange.__struct_encode_fields__) - of_choices


@pytest.mark.parametrize(("error", "answer"), ANSWERS.items())
def test_f9_answers(error: type[errors.ForqError], answer: tuple[int, str]):
    """What the caller did wrong is told in the error's words; what failed in the server is for its log."""
    response = answer_error(error("some detail"), REQUEST)
    body = json_of(response)
    assert (response.status, blamed(body)["code"]) == answer
    assert (body["message"] == "some detail") == issubclass(error, errors.CallerError)
    assert response.headers == (((b"retry-after", b"1"),) if response.status == 503 else ())


@pytest.mark.parametrize(
    "error", [errors.ForqError, errors.CallerError, errors.ServiceError, KeyError, ValueError]
)
def test_f9_an_unknown_error_is_raised(error: type[Exception]):
    with pytest.raises(error, match="detail"):
        answer_error(error("detail"), REQUEST)


def test_f9_callers_faults_are_4xx_and_ours_5xx():
    for error in CLASSES:
        for code in (error.code, *error.field_codes.values()):
            assert CODES[code].status // 100 == (4 if issubclass(error, errors.CallerError) else 5)


def test_f9_every_code_named_in_the_module_is_in_the_table():
    named = {
        value
        for name, value in vars(codes).items()
        if name.isupper() and isinstance(value, str) and name[0] != "_"
    }
    assert named | {*SETTING_INVALID.values(), *TOKEN_INVALID.values()} == CODES.keys()
    for code, (status, meaning) in CODES.items():
        assert answer(Refused(code)).status == status
        assert blamed(json_of(answer(Refused(code)))) == {"code": code}
        assert re.fullmatch(r"[A-Za-z_]+(\.[A-Za-z_]+)*", code)
        assert meaning.endswith(".")


def test_f9_no_code_is_spelled_out_anywhere_else():
    for path in Path(forq_trio.http.__file__).parent.glob("**/*.py"):
        if path.name == "codes.py":
            continue
        for code in CODES:
            assert f'"{code}"' not in path.read_text(), f"{path.name} spells out {code}"
