"""The values in the paths of endpoints, by their names in braces: declared once for the document and for clients."""

from typing import Any

from msgspec import Struct

from forq_trio.model import errors, limits
from forq_trio.model.forq_error import ForqError


class PathParameter(Struct, frozen=True):
    """meaning, schema: for the document, in JSON Schema. error: for a value that is none; its field is the name."""

    meaning: str
    schema: dict[str, Any]
    error: type[ForqError]


def _named(letters: str, most: int) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^[{letters}]{{1,{most}}}$"}


_PIPELINE_NAME = _named("A-Za-z0-9._:-", 128)
PATH_PARAMETERS = {
    "queue": PathParameter(
        "The queue's name.",
        {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,64}(-dlq)?$"},
        errors.InvalidQueueName,
    ),
    "messageId": PathParameter(
        "The message's id.", {"type": "string", "format": "uuid"}, errors.MalformedMessageId
    ),
    "key": PathParameter(
        "The key, each character percent-encoded but A-Z a-z 0-9 - _ ~ and a . that is not alone.",
        {"type": "string", "minLength": 1, "maxLength": limits.KEY_LENGTH_MAX},
        errors.InvalidKey,
    ),
    "consumer": PathParameter("The consumer's name.", _named("A-Za-z0-9._-", 64), errors.OutOfRange),
    "number": PathParameter("The number of a lease.", {"type": "integer", "minimum": 1}, errors.OutOfRange),
    "redriveId": PathParameter("The redrive's id.", {"type": "string"}, errors.RedriveNotFound),
    "stage": PathParameter("The name of the stage.", _PIPELINE_NAME, errors.InvalidName),
    "page": PathParameter(
        "The number of the page, from 0.", {"type": "integer", "minimum": 0}, errors.OutOfRange
    ),
    "app": PathParameter("The name of the app.", _PIPELINE_NAME, errors.InvalidName),
    "workerId": PathParameter(
        "The id that the worker made at its start.",
        {"type": "string", "format": "uuid"},
        errors.InvalidRequest,
    ),
    "outbox": PathParameter("The id of the outbox.", _PIPELINE_NAME, errors.InvalidName),
    "schedule": PathParameter("The schedule's name.", _named("A-Za-z0-9._-", 128), errors.InvalidSchedule),
    "name": PathParameter("The token's name.", _named("A-Za-z0-9._-", 64), errors.TokenNotFound),
}
"""All of them by name."""
