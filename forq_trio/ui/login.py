"""Login and logout (contract F15)."""

import secrets

from quart import Blueprint, Response, request

from forq_trio.http.access import CLIENT_LENGTH_MAX
from forq_trio.http.throttle import Throttle
from forq_trio.model import limits
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui import csrf
from forq_trio.ui.rendering import html_response
from forq_trio.ui.sessions import COOKIE
from forq_trio.ui.site import THEME_COOKIE, Site, accepts_gzip, see_other

LOGIN_COOKIE = "ForqLogin"
_KEY_LENGTH_MAX = 1_024
_AGENT_LENGTH_MAX = 200


def login_routes(site: Site) -> Blueprint:
    blueprint = Blueprint("login", __name__)
    path = f"{site.templates.base}/"
    secure = site.config.env != "local"
    throttle = Throttle()

    def form(status: int = 200, error: str | None = None) -> Response:
        nonce = request.cookies.get(LOGIN_COOKIE, "")
        if len(nonce) != 22:
            nonce = secrets.token_urlsafe(16)
        text = site.templates.render(
            "login.html",
            **site.common() | {"csrf": csrf.make_token(nonce)},
            host=request.host,
            next=_local(request.args.get("next", "")),
            error=error,
        )
        response = html_response(text, accepts_gzip(), status)
        response.set_cookie(LOGIN_COOKIE, nonce, path=path, httponly=True, samesite="Lax", secure=secure)
        return response

    @blueprint.get("/login")
    async def show() -> Response:
        if site.sessions.find(request.cookies.get(COOKIE, "")) is not None:
            return see_other(site.url(_local(request.args.get("next", "")) or "/"))
        return form()

    @blueprint.post("/login")
    async def log_in() -> Response:
        client = client_address(trust_proxy_headers=site.config.trust_proxy_headers)
        locked_seconds = throttle.locked_seconds(client)
        if locked_seconds:
            response = form(429, f"Too many wrong keys from here. Try again in {locked_seconds:.0f} s.")
            response.headers["Retry-After"] = f"{locked_seconds:.0f}"
            return response
        fields = await request.form
        key = fields.get("key", "").strip()
        agent = request.headers.get("User-Agent", "")[:_AGENT_LENGTH_MAX]
        session_id = None
        if 0 < len(key) <= _KEY_LENGTH_MAX and key.isascii():
            session_id = await site.sessions.open(key, client, agent)
        if session_id is None:
            throttle.failed(client)
            if throttle.locked_seconds(client):
                log(LogEvent.AUTH_THROTTLED, client=client)
            return form(403, "This is neither the server’s secret nor a token that may browse.")
        throttle.succeeded(client)
        target = site.url(_local(fields.get("next", "")) or "/")
        response = see_other(target)
        seconds = limits.SESSION_LIFE_MS // 1_000
        response.set_cookie(
            COOKIE, session_id, max_age=seconds, path=path, httponly=True, samesite="Lax", secure=secure
        )
        response.delete_cookie(LOGIN_COOKIE, path=path)
        return response

    @blueprint.post("/logout")
    async def log_out() -> Response:
        await site.sessions.end(site.viewer)
        response = site.done(None, go=site.url("/login"))
        response.delete_cookie(COOKIE, path=path, httponly=True, samesite="Lax", secure=secure)
        return response

    @blueprint.post("/theme")
    async def choose_theme() -> Response:
        chosen = (await request.form).get("theme", "")
        response = site.done(None)
        if chosen in ("light", "dark"):
            response.set_cookie(
                THEME_COOKIE,
                chosen,
                max_age=365 * 86_400,
                path=path,
                httponly=True,
                samesite="Lax",
                secure=secure,
            )
        return response

    return blueprint


def _local(path: str) -> str:
    """`path` if it is one of ours, else ""."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else ""


def client_address(*, trust_proxy_headers: bool) -> str:
    """The address that wrong keys are counted for, by the same rule as the API's (`http.access.client_address`)."""
    if trust_proxy_headers:
        last = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        if last:
            return last[:CLIENT_LENGTH_MAX]
    return request.remote_addr or ""
