"""Access tokens on the System page: make one, see its text once, revoke it."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from quart import Response, request

from forq_trio.drawing.format import sentence
from forq_trio.model import limits
from forq_trio.model.access.types import ALL_QUEUES, Scope
from forq_trio.model.errors import CallerError, InvalidToken, TokenExists
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site

MEANINGS = {
    Scope.PRODUCE: "send messages",
    Scope.CONSUME: "receive, ack and nack them",
    Scope.BROWSE: "look at queues and messages, log in here",
    Scope.REDRIVE: "redrive, edit and delete dead letters",
    Scope.CANCEL: "cancel messages that wait",
    Scope.SCHEDULE: "make, pause and delete schedules, which send messages",
    Scope.ADMIN: "all of it, and settings, purge, tokens, backups",
}
_DAYS = re.compile(r"([0-9]{1,5})\s*d?")


class TokenForm(Struct, frozen=True):
    """The typed fields, and their mistakes by field."""

    name: str = ""
    scopes: tuple[str, ...] = ("browse",)
    queues: str = ALL_QUEUES
    days: str = ""
    errors: Mapping[str, str] = {}


def read_form(fields: Any) -> TokenForm:
    """The form as it was sent; days: empty for a token that never expires."""
    errors = {}
    days = fields.get("days", "").strip()
    if days:
        match = _DAYS.fullmatch(days)
        if match is None or not 1 <= int(match[1]) <= limits.TOKEN_LIFE_DAYS_MAX:
            errors["days"] = f"From 1 to {format(limits.TOKEN_LIFE_DAYS_MAX, ',')} days, or empty for never."
    return TokenForm(
        fields.get("name", "").strip(),
        tuple(fields.getlist("scopes")),
        fields.get("queues", "").strip() or ALL_QUEUES,
        days,
        errors,
    )


def token_routes(site: Site) -> Routes:
    routes = Routes("tokens", site)

    def form_part(form: TokenForm, status: int = 200) -> Response:
        return site.part("system/token_form.html", status, form=form, meanings=MEANINGS)

    @routes.get("/system/tokens/new", Scope.ADMIN)
    async def ask() -> Response:
        return form_part(TokenForm())

    @routes.post("/system/tokens", Scope.ADMIN)
    async def create() -> Response:
        form = read_form(await request.form)
        if form.errors:
            return form_part(form, 400)
        expires_at = None
        if form.days:
            expires_at = site.clock.now_ms() + int(form.days.rstrip("d ")) * limits.DAY_MS
        try:
            made = await site.broker.create_token(
                form.name, [Scope(scope) for scope in form.scopes], form.queues, expires_at=expires_at
            )
        except (InvalidToken, TokenExists, ValueError) as error:
            return form_part(_with_error(form, error), 400)
        return site.part("system/token_made.html", made=made)

    @routes.get("/system/tokens/<name>/revoke", Scope.ADMIN)
    async def ask_revoke(name: str) -> Response:
        found = next((token for token in await site.broker.tokens() if token.name == name), None)
        sessions = sum(session.key_name == name for session in site.broker.sessions.all())
        return site.part("system/revoke.html", name=name, found=found, sessions=sessions)

    @routes.post("/system/tokens/<name>/revoke", Scope.ADMIN)
    async def revoke(name: str) -> Response:
        await site.broker.revoke_token(name)
        return site.done(f"{name} is revoked", go=site.url("/system") + "#tokens")

    return routes


def _with_error(form: TokenForm, error: Exception) -> TokenForm:
    """The form with the error beside the field that it is about."""
    if isinstance(error, CallerError):
        field = {"expires_at": "days", None: "name"}.get(error.field, error.field or "name")
        text = error.message.partition(": ")[2] or error.message
    else:
        field, text = "scopes", "there is no such scope"
    return replace(form, errors={field: sentence(text)})
