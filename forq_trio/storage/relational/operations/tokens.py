"""Access tokens: few enough to be all in memory, so that a request is checked without a query."""

import msgspec
from msgspec.structs import astuple, replace

from forq_trio.model import limits
from forq_trio.model.access.types import expired_longest
from forq_trio.model.commands import NoteTokenUse, RevokeToken, SaveToken
from forq_trio.model.errors import CallerError, TokenExists, TooManyTokens
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.transaction import Transaction


@operation_on_each(SaveToken)
def save(tx: Transaction, command: SaveToken) -> CallerError | None:
    token = command.token
    if token.name in tx.tokens:
        return TokenExists()
    if len(tx.tokens) >= limits.TOKENS_MAX:
        expired = expired_longest(tx.tokens.values(), tx.now_ms)
        if expired is None:
            return TooManyTokens()
        _remove(tx, expired)
    name, scopes, *members, digest = astuple(token)
    tx.query("save_token", name, msgspec.json.encode(scopes).decode(), *members, digest.hex)
    tx.tokens[token.name] = token
    return None


@operation_on_each(RevokeToken)
def revoke(tx: Transaction, command: RevokeToken) -> bool:
    known = command.name in tx.tokens
    if known:
        _remove(tx, command.name)
    return known


def _remove(tx: Transaction, name: str) -> None:
    tx.query("revoke_token", name)
    del tx.tokens[name]


@operation_on_each(NoteTokenUse)
def note_use(tx: Transaction, command: NoteTokenUse) -> None:
    for name, used_at in command.used.items():
        token = tx.tokens.get(name)
        if token is None or (token.last_used_at is not None and token.last_used_at >= used_at):
            continue
        tx.query("note_token_use", used_at, name)
        tx.tokens[name] = replace(token, last_used_at=used_at)
