"""The endpoint that says which server processes use the database."""

from forq_trio.model.access import Scope
from forq_trio.wire import processes as wire
from forq_trio.wire.endpoints.endpoint import Answer, Endpoint

LIST_PROCESSES = Endpoint(
    "GET",
    "/processes",
    Scope.BROWSE,
    name="listProcesses",
    tag="Processes",
    summary="The server processes on the database",
    description="Silent ones too, for five minutes. On a SQLite file it is the one that answers.",
    answers=(Answer(200, "What they said of themselves within the last 5 seconds.", wire.ProcessList),),
)
