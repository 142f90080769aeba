"""Access tokens: make one, list them, revoke one. Our additions to Forq's API."""

import msgspec

from forq_trio.broker.broker import Broker
from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.calls import MakeRoute, calling
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Route
from forq_trio.wire.endpoints import tokens as api
from forq_trio.wire.tokens import NewToken, TokenList

# No proxy may store the one answer that has a token's text.
_NO_STORE = ((b"cache-control", b"no-store"),)

_read_token = BodyReader(NewToken)
_encode = msgspec.json.Encoder().encode


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


def token_routes(route: MakeRoute, broker: Broker) -> list[Route]:
    """The routes below /tokens. route: makes one of an endpoint and what responds."""
    tokens = TokenEndpoints(broker)
    return [
        route(api.CREATE_TOKEN, tokens.create),
        route(api.LIST_TOKENS, tokens.list),
        calling(route, api.REVOKE_TOKEN, broker.revoke_token),
    ]
