"""The values in the paths of endpoints, by their names in braces: declared once for the document and for clients.

Those of queues and messages are here. Every other one stands with the first endpoint that has it.
"""

from typing import Any

from msgspec import Struct

from forq_trio.model import errors
from forq_trio.model.forq_error import ForqError


class PathParameter(Struct, frozen=True):
    """A value in the paths. meaning, schema (JSON Schema): for the document. error: for an invalid value."""

    meaning: str
    schema: dict[str, Any]
    error: type[ForqError]


def name_schema(letters: str, most: int) -> dict[str, Any]:
    """The schema of a name of 1 to `most` of these letters."""
    return {"type": "string", "pattern": f"^[{letters}]{{1,{most}}}$"}


PROGRAM_NAME = name_schema("A-Za-z0-9._:-", 128)
"""The schema of the name that an application gives to something of its own."""

PATH_PARAMETERS = {
    "queue": PathParameter(
        "The queue's name: 1 to 64 characters of A-Z a-z 0-9 . _ -, and perhaps the suffix -dlq.",
        {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,64}(-dlq)?$"},
        errors.InvalidQueueName,
    ),
    "messageId": PathParameter(
        "The message's id.", {"type": "string", "format": "uuid"}, errors.MalformedMessageId
    ),
}
"""All values in paths, by name."""


def declare_path(**parameters: PathParameter) -> None:
    """Declare values for the paths of the endpoints below the call."""
    assert not parameters.keys() & PATH_PARAMETERS.keys(), parameters
    PATH_PARAMETERS.update(parameters)
