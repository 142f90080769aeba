"""The endpoint that says which server processes use the database."""

from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint
from forq_trio.model.server import process_bodies as bodies

LIST_PROCESSES = Endpoint(
    "GET",
    "/processes",
    Scope.BROWSE,
    name="listProcesses",
    tag="Processes",
    summary="The server processes on the database",
    description="Silent ones are listed, too, for five minutes. On a SQLite file there is only the one that "
    "answers.",
    answers=(
        Answer(200, "The processes, as of their latest reports, one every 5 seconds.", bodies.ProcessList),
    ),
)
