"""Errors of a request whose text cannot be read by the queue, or by consumers."""

from forq_trio.model.forq_error import CallerError


class InvalidRequest(
    CallerError,
    code="bad_request.body.invalid",
    means="The body is not UTF-8, not JSON, or a member is missing or of the wrong type.",
):
    """The request is not one that the queue knows"""


class InvalidContent(InvalidRequest):
    """The content is not text that UTF-8 can carry"""


class InvalidJson(InvalidRequest, ValueError):
    """The value cannot be JSON that every program reads: NaN, an infinity, or too many levels"""
