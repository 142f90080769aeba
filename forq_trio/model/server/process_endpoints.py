"""The endpoint that says which server processes use the database."""

from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import Answer, Endpoint, declare_topic
from forq_trio.model.server import process_bodies as bodies

declare_topic("Processes", "The servers and programs that share a database.")
LIST_PROCESSES = Endpoint(
    "GET",
    "/processes",
    Scope.BROWSE,
    name="listProcesses",
    tag="Processes",
    summary="The server processes on the database",
    description="With PostgreSQL (docs/postgres.md) they are all servers and programs that have the queue open; on a "
    "SQLite file there is only the one that answers. A process reports every 5 seconds. It is silent if "
    "nothing was heard for 15 seconds, and left out after five minutes, when it ends, or when another one "
    "on its host was started after it fell silent. Times are the database's. At most 100 are listed.",
    answers=(
        Answer(200, "The processes, as of their latest reports, one every 5 seconds.", bodies.ProcessList),
    ),
)
