"""The declaration of an endpoint: method, path and scope, its query, body and answers, its errors, and its texts."""

import re
from typing import Any, Generic, TypeVar

from msgspec import Struct

from forq_trio.model import errors
from forq_trio.model.access.types import Scope
from forq_trio.model.forq_error import AnyReason
from forq_trio.model.paths import PATH_PARAMETERS
from forq_trio.model.queries import Query

AnswerT_co = TypeVar("AnswerT_co", covariant=True)

PREFIX = "/api/v1"
JSON, NDJSON = "application/json", "application/x-ndjson"


class Header(Struct, frozen=True):
    """A header of a request or an answer, for the documentation."""

    name: str
    meaning: str
    schema: dict[str, Any]  # JSON Schema
    always: bool = False  # every answer has it


class Answer(Struct, Generic[AnswerT_co], frozen=True):
    """A successful answer."""

    status: int
    meaning: str
    body: type[AnswerT_co]  # the type of its JSON, or of one line of NDJSON; NoneType for an empty body
    content_type: str = JSON
    full: type[Any] | None = None  # the type if the request asks for all members; None: the same
    headers: tuple[Header, ...] = ()


class Operation(Struct, Generic[AnswerT_co], frozen=True, kw_only=True):
    """The description of a route for the OpenAPI document."""

    name: str
    tag: str
    summary: str
    answers: tuple[Answer[AnswerT_co], ...]
    # those of the operation; the errors of path, query, body and gate follow from them (`possible_errors`)
    errors: tuple[AnyReason, ...] = ()
    description: str = ""
    # the type of the query; None if it has no parameters
    query: type[Query] | None = None
    headers: tuple[Header, ...] = ()
    body: Any = None
    body_type: str = JSON  # the content type of the body; for NDJSON, `body` is the type of one line
    needs_body: bool = True  # False if the body may be left out

    @property
    def query_names(self) -> frozenset[str]:
        """The names of the parameters in the query."""
        return frozenset(() if self.query is None else self.query.__struct_encode_fields__)


class Endpoint(Operation[AnswerT_co], frozen=True):
    """An endpoint of Forq's API."""

    method: str
    path: str  # below PREFIX, with names in braces
    scope: Scope  # what a token needs
    checks_scope: bool = True  # False if the endpoint checks the scope itself
    head: bool = True  # False if GET has effects, so that HEAD is not answered like it
    takes_nothing: bool = False  # a body is refused unless it is empty, or an object without members

    @property
    def path_names(self) -> list[str]:
        """The names of the values in the path, in their order."""
        return re.findall(r"{(\w+)}", self.path)

    def __post_init__(self) -> None:
        assert all(name in PATH_PARAMETERS for name in self.path_names), self.path


class CommandEndpoint(Endpoint[AnswerT_co], frozen=True, kw_only=True):
    """An endpoint that is one command: of each, the broker's work, the request of a client and the route follow."""

    # The name of its class. Not the class: clients do not import commands, which would take 23 ms of their start.
    command: str

    def __post_init__(self) -> None:
        super().__post_init__()
        COMMAND_ENDPOINTS.append(self)


TOPICS: dict[str, str] = {}
"""What holds for all endpoints of a topic, by its name: the tags of the OpenAPI document."""


def declare_topic(name: str, meaning: str) -> None:
    """Say what holds for all endpoints whose tag has this name."""
    assert name not in TOPICS, name
    TOPICS[name] = meaning


COMMAND_ENDPOINTS: list[CommandEndpoint[Any]] = []
"""All of them. Each stands above its method, in the `methods` of its topic."""


READ_ERRORS: tuple[AnyReason, ...] = (
    errors.StorageUnavailable,
    errors.StorageFull,
    errors.StorageLost,
    errors.ReadDeadlineExceeded,
    errors.Stopping,
)
"""The errors that every read of the database may answer; a read of leased messages needs space. Every endpoint may also
answer `InternalError`, and one that changes something `OutcomeUnknown`."""

SETTLE_ERRORS: tuple[AnyReason, ...] = (
    errors.StorageUnavailable,
    errors.StorageFull,
    errors.Overloaded,
    errors.Stopping,
)
"""The errors that every settlement may answer. One that names a message leased by a pipeline needs space."""

WRITE_ERRORS: tuple[AnyReason, ...] = (*SETTLE_ERRORS, errors.StorageLost)
"""The errors that every other change may answer."""

STORE_ERRORS: tuple[AnyReason, ...] = (*WRITE_ERRORS, errors.QueueBound)
"""The errors that every change that makes or fills queues may answer."""

TABLE_ERRORS: tuple[AnyReason, ...] = (
    errors.QueueBound,
    errors.NoTable,
    errors.WrongTable,
    errors.DatabaseRefused,
    errors.StorageUnavailable,
    errors.Overloaded,
)
"""The errors that every call about messages may answer if the queue is bound to a table."""
