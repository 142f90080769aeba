"""`GET /healthcheck` (contract F10) and `GET /livez`, without a key.

The first is a real operation on the write connection, or 503: can this server work? The second asks no database: does
it answer at all? What fixes a server that does not answer, a restart, fixes no full disk and no lost file.
"""

import time
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Literal

import msgspec
import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.queries import QueryReader
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.router import Route
from forq_trio.model import limits
from forq_trio.model.endpoint import Answer, Operation
from forq_trio.model.engine_facts import REFUSAL_WORDS, ReplicaState, SendsRefused
from forq_trio.model.errors import ServiceError, StorageUnavailable
from forq_trio.model.queries import Query
from forq_trio.model.server.database_state import DatabaseState


class HealthQuery(Query, frozen=True, kw_only=True):
    """The parameters of a health check."""

    verbose: Annotated[str, msgspec.Meta(description="If present, describe the server.")] | None = None


_read_query = QueryReader(HealthQuery)


class About(msgspec.Struct, frozen=True):
    """The facts about this server in the verbose answer."""

    version: str
    engine: str  # "sqlite", ...
    durability: str  # see FORQ_DURABILITY


class Health(msgspec.Struct, frozen=True, rename="camel"):
    """The verbose answer of a server whose database works."""

    status: Literal["ok"]  # works
    version: str  # of the server
    engine: str  # `sqlite` or `postgresql`
    durability: str  # see FORQ_DURABILITY
    uptime_seconds: int  # since its start
    # why sends are refused, `storage_full` on a full disk, as `forq_sends_refused` in the metrics has it;
    # null where not
    sends_refused: SendsRefused | None
    # `used`: reads go to a replica (docs/postgres.md#a-replica-for-reads); `behind` or `away`: the primary
    # answers them instead; null without one
    replica: ReplicaState | None = None
    # for how long a snapshot has kept PostgreSQL's vacuum from removing rows
    # (docs/postgres.md#old-snapshots); null below a minute
    snapshot_held_seconds: int | None = None
    # how many other servers on the database have another FORQ_AUTH_SECRET
    other_secrets: int = 0


class HealthCheck:
    """Answers health checks; the uptime counts from its construction. monotonic: a clock that never goes back."""

    def __init__(
        self,
        broker: Broker,
        about: About,
        monotonic: Callable[[], float] = time.monotonic,
        replica: Callable[[], ReplicaState | None] = lambda: None,
        database: Callable[[], DatabaseState | None] = lambda: None,
        other_secrets: Callable[[], int] = lambda: 0,
    ) -> None:
        self._broker = broker
        self._about = about
        self._replica = replica
        self._database = database
        self._other_secrets = other_secrets
        self._monotonic = monotonic
        self._started = monotonic()

    async def check(self, request: Request) -> Response:
        """204, or with `?verbose` 200 and a description; 503 when the database did not answer in time."""
        healthy = False
        with trio.move_on_after(limits.HEALTH_SECONDS_MAX):
            try:
                await self._broker.healthcheck()
            except ServiceError as error:
                raise Refused(
                    StorageUnavailable, error.message if error.message_for_callers else self._why()
                ) from None
            healthy = True
        if not healthy:
            raise Refused(StorageUnavailable, self._why())
        if _read_query(request.query).verbose is None:
            return NO_CONTENT
        about = self._about
        uptime_seconds = int(self._monotonic() - self._started)
        refused = self._broker.known.sends_refused
        database = self._database()
        held = None if database is None else database.old_snapshot
        health = Health(
            "ok",
            about.version,
            about.engine,
            about.durability,
            uptime_seconds,
            refused,
            self._replica(),
            None if held is None else held.held_ms // limits.SECOND_MS,
            self._other_secrets(),
        )
        return Response(200, msgspec.json.encode(health))

    def _why(self) -> str | None:
        """Why the database does not work, if that is known: a file of it is lost."""
        refused = self._broker.known.sends_refused
        return None if refused is None else REFUSAL_WORDS[refused]

    async def live(self, request: Request) -> Response:
        """204, whatever the database does."""
        return NO_CONTENT

    def routes(self) -> list[Route]:
        """The two routes."""
        operation = Operation(
            name="healthcheck",
            tag="Operation",
            summary="Is the server able to work?",
            description="Runs a real operation on the database. Needs no key and tells no secrets. 503 "
            "`forq.unhealthy` at the latest after three seconds. A server with a full disk is healthy in this sense: "
            "receives and acks work, and without them the disk would stay full.",
            query=HealthQuery,
            answers=(
                Answer(204, "Healthy.", NoneType),
                Answer(200, "Healthy; asked with `verbose`.", Health),
            ),
            errors=(StorageUnavailable,),
        )
        alive = Operation(
            name="live",
            tag="Operation",
            summary="Does the server answer?",
            description="Asks no database: where this fails, a restart helps. Needs no key.",
            answers=(Answer(204, "It answers.", NoneType),),
        )
        return [
            Route("GET", "/healthcheck", self.check, operation, answer_error),
            Route("GET", "/livez", self.live, alive, answer_error, parameters=frozenset()),
        ]
