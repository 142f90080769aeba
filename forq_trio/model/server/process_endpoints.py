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
    description="Silent ones too, for five minutes. On a SQLite file it is the one that answers.",
    answers=(Answer(200, "What they said of themselves within the last 5 seconds.", bodies.ProcessList),),
)
