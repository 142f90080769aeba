"""Endpoints for access tokens."""

from types import NoneType

from forq_trio.model import errors
from forq_trio.model.access.bodies import CreatedToken, NewToken, TokenList
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.paths import PathParameter, declare_path, name_schema

declare_path(
    name=PathParameter(
        "The token's name: 1 to 64 characters of A-Z a-z 0-9 . _ -.",
        name_schema("A-Za-z0-9._-", 64),
        errors.TokenNotFound,
    )
)
declare_topic(
    "Access", "Tokens for clients that should not have the secret; docs/access.md says what they allow."
)
CREATE_TOKEN = Endpoint(
    "POST",
    "/tokens",
    Scope.ADMIN,
    name="createToken",
    tag="Access",
    summary="Make an access token",
    description="Only this answer has the text of the token. A token cannot be changed: 409 `conflict.token_exists` "
    "for a name in use. 409 `conflict.too_many_tokens` for the 1,001st, unless one has expired: the one "
    "that expired longest ago is removed for it. docs/access.md says what tokens allow. The secret is "
    "needed, or a token with the scope for all queues.",
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
    description="Without their texts, and with those that have expired. The secret is needed, or a token with the "
    "scope for all queues.",
    answers=(Answer(200, "The tokens by name.", TokenList),),
)
REVOKE_TOKEN = Endpoint(
    "DELETE",
    "/tokens/{name}",
    Scope.ADMIN,
    name="revokeToken",
    tag="Access",
    summary="Revoke an access token, at once and for good",
    description="From the next request on. The secret is needed, or a token with the scope for all queues.",
    answers=(Answer(204, "It is revoked, and its name is free again.", NoneType),),
    errors=WRITE_ERRORS,
)
