"""Parameters of queries that several endpoints have, for the OpenAPI document; `reading` reads them."""

from forq_trio.http.router import Parameter
from forq_trio.model import errors, limits

ID = {"type": "integer", "minimum": 0, "maximum": limits.SEQUENCE_MAX}
"""The schema of a sequence, or of the id of an event or of a finished message."""


READ_ERRORS = (
    errors.OutcomeUnknown,
    errors.StorageUnavailable,
    errors.Stopping,
    errors.StorageLost,
    errors.ReadDeadlineExceeded,
)
"""What every read may answer."""


def limit_parameter(what: str, most: int, default: int | None = None) -> Parameter:
    """The most `what` wanted; default: None for `most`. `reading.query_limit` reads it."""
    schema = {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "default": most if default is None else default,
    }
    return Parameter("limit", "query", f"The most {what} wanted.", schema)


def range_parameters(what: str, number: str) -> tuple[Parameter, Parameter]:
    """Where a page of a log begins and ends. `reading.query_range` reads them."""
    return (
        Parameter("after", "query", f"Only {what} with {number} above this.", {**ID, "default": 0}),
        Parameter("until", "query", f"Only {what} with {number} up to this.", ID),
    )


QUEUES_PAGE = (
    Parameter("after", "query", "Only queues whose names come after this one.", {"type": "string"}),
    limit_parameter("queues", limits.QUEUES_PAGE_MAX),
)
"""The parameters of lists of queues; `reading.query_page` reads them."""
