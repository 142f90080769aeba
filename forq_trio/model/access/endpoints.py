"""Endpoints for access tokens."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.bodies import CreatedToken, NewToken, TokenList
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.paths import PathParameter, declare_path, name_schema

declare_path(name=PathParameter("The token's name.", name_schema("A-Za-z0-9._-", 64), errors.TokenNotFound))
CREATE_TOKEN = Endpoint(
    "POST",
    "/tokens",
    Scope.ADMIN,
    name="createToken",
    tag="Access",
    summary="Make an access token",
    description="Only this answer has the text of the token.",
    body=NewToken,
    answers=(Answer(201, "The token.", CreatedToken),),
    errors=(errors.TokenExists, errors.TooManyTokens, *WRITE_ERRORS),
)
LIST_TOKENS = Endpoint(
    "GET",
    "/tokens",
    Scope.ADMIN,
    name="listTokens",
    tag="Access",
    summary="All access tokens",
    answers=(Answer(200, "The tokens by name.", TokenList),),
)
REVOKE_TOKEN = Endpoint(
    "DELETE",
    "/tokens/{name}",
    Scope.ADMIN,
    name="revokeToken",
    tag="Access",
    summary="Revoke an access token, at once and for good",
    answers=(Answer(204, "It is revoked, and its name is free again.", NoneType),),
    errors=WRITE_ERRORS,
)
