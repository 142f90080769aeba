"""Access tokens: make one, list them, revoke one. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.router import Answer, MakeRoute, Operation, Route
from forq_trio.model import errors
from forq_trio.model.access import Scope
from forq_trio.wire.tokens import CreatedToken, NewToken, TokenList

# No proxy may store the one answer that has a token's text.
_NO_STORE = ((b"cache-control", b"no-store"),)

_read_token = BodyReader(NewToken)
_encode = msgspec.json.Encoder().encode

CREATE = Operation(
    name="createToken",
    tag="Access",
    summary="Make an access token",
    description="Only this answer has its text.",
    body=NewToken,
    answers=(Answer(201, "The token.", CreatedToken),),
    errors=(
        errors.InvalidRequest,
        errors.UnknownMember,
        *errors.InvalidToken.members.values(),
        errors.TokenExists,
        errors.TooManyTokens,
        errors.OutcomeUnknown,
        errors.StorageUnavailable,
        errors.StorageLost,
        errors.Overloaded,
        errors.Stopping,
    ),
)
LIST = Operation(
    name="listTokens",
    tag="Access",
    summary="All access tokens",
    answers=(Answer(200, "The tokens by name.", TokenList),),
    errors=(errors.OutcomeUnknown,),
)
REVOKE = Operation(
    name="revokeToken",
    tag="Access",
    summary="Revoke an access token, at once and for good",
    answers=(Answer(204, "It is revoked, and its name is free again."),),
    errors=(
        errors.TokenNotFound,
        errors.OutcomeUnknown,
        errors.StorageUnavailable,
        errors.StorageLost,
        errors.Overloaded,
        errors.Stopping,
    ),
)


class TokenEndpoints:
    """For the holder of the secret, or of a token with the scope admin for all queues."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def create(self, request: Request) -> Response:
        """201 with the text of the token."""
        wanted = _read_token(request.body)
        token = await self._broker.create_token(
            wanted.name, wanted.scopes, wanted.queues, expires_at=wanted.expires_at
        )
        return Response(201, _encode(token), headers=_NO_STORE)

    async def list(self, request: Request) -> Response:
        """All tokens, also expired ones."""
        return Response(200, _encode(TokenList(await self._broker.tokens())))

    async def revoke(self, request: Request, name: str) -> Response:
        """204: from now on its text is a wrong key."""
        await self._broker.revoke_token(name)
        return NO_CONTENT


def token_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /tokens. route: makes one of method, path, endpoint, operation, scope."""
    tokens = TokenEndpoints(broker)
    return [
        route("POST", "/tokens", tokens.create, CREATE, Scope.ADMIN),
        route("GET", "/tokens", tokens.list, LIST, Scope.ADMIN),
        route("DELETE", "/tokens/{name}", tokens.revoke, REVOKE, Scope.ADMIN),
    ]
