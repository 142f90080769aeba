"""Login and logout (contract F15)."""

import secrets
from math import ceil

from markupsafe import escape
from quart import Blueprint, Response, request

from forq_trio.http.access import CLIENT_LENGTH_MAX
from forq_trio.http.throttle import Throttle
from forq_trio.model import limits
from forq_trio.model.errors import Forbidden
from forq_trio.model.holders import network
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.telemetry.rejections import Cause
from forq_trio.ui import csrf
from forq_trio.ui.rendering import html_response
from forq_trio.ui.sessions import COOKIE
from forq_trio.ui.site import THEME_COOKIE, Site, accepts_gzip, see_other, theme

LOGIN_COOKIE = "ForqLogin"
_KEY_LENGTH_MAX = 1_024
_WRONG_KEY = "This is neither the server’s secret nor a token that may browse."
_WRONG_LINK = "This link has been used, or is too old. Log in with the secret."
_NONCE_BYTES = 16
_NONCE_LENGTH = 22
_THEME_SECONDS = 365 * 86_400
_CSRF, _HOST, _NEXT = "\x01csrf\x01", "\x01host\x01", "\x01next\x01"
"""Placeholders for values in the page; the characters around them occur in no text."""


class _Cookies:
    """The cookies of the UI: HttpOnly, SameSite=Lax, and Secure unless FORQ_ENV is local."""

    def __init__(self, site: Site) -> None:
        self._path = f"{site.templates.base}/"
        self._secure = site.config.env != "local"

    def set(self, response: Response, name: str, value: str, seconds: int | None = None) -> None:
        """Set a cookie. seconds: how long the browser stores it; None: until it is closed."""
        response.set_cookie(
            name, value, max_age=seconds, path=self._path, httponly=True, samesite="Lax", secure=self._secure
        )

    def remove(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path=self._path, httponly=True, samesite="Lax", secure=self._secure)


class _Login:
    """The login page, and its form."""

    def __init__(self, site: Site, cookies: _Cookies) -> None:
        self._site = site
        self._cookies = cookies
        self._throttle = Throttle()
        self._pages: dict[tuple[str | None, bool], str] = {}

    def form(self, next_page: str, status: int = 200, error: str | None = None) -> Response:
        """The page. next_page: where to go after the login; error: what is wrong with the key."""
        nonce = request.cookies.get(LOGIN_COOKIE, "")
        if len(nonce) != _NONCE_LENGTH:
            nonce = secrets.token_urlsafe(_NONCE_BYTES)
        text = self._page(ended=error is None and bool(request.args.get("ended", "")), error=error)
        for place, value in (
            (_CSRF, csrf.make_token(nonce)),
            (_HOST, request.host),
            (_NEXT, _local(next_page)),
        ):
            text = text.replace(place, escape(value))
        response = html_response(text, accepts_gzip(), status)
        self._cookies.set(response, LOGIN_COOKIE, nonce)
        return response

    def _page(self, *, ended: bool, error: str | None) -> str:
        """The page, with placeholders for the values that each request has. Without an error it is made once."""
        kind = (theme(), ended)
        text = None if error else self._pages.get(kind)
        if text is None:
            values = self._site.common() | {"csrf": _CSRF, "viewer": None}
            text = self._site.templates.render(
                "login.html",
                **values,
                host=_HOST,
                next=_NEXT,
                error=error,
                ended=ended,
                link=self._site.sessions.link is not None,
            )
            if error is None:
                self._pages[kind] = text
        return text

    async def log_in(self) -> Response:
        """Open a session with the key, or the link. A right one works even from an address that is locked out."""
        site = self._site
        client = client_address(trust_proxy_headers=site.config.trust_proxy_headers)
        fields = await request.form
        next_page, link = fields.get("next", ""), fields.get("link", "")
        try:
            session_id = await _open_session(site, fields.get("key", "").strip(), link, client)
        except Forbidden as error:
            site.counters.record_rejection(Cause.FORBIDDEN)
            return self.form(next_page, 403, error.message)
        if session_id is None:
            return self._refuse(next_page, client, _WRONG_LINK if link else _WRONG_KEY)
        self._throttle.succeeded(client)
        response = see_other(site.url(_local(next_page) or "/"))
        self._cookies.set(response, COOKIE, session_id, limits.SESSION_LIFE_MS // 1_000)
        self._cookies.remove(response, LOGIN_COOKIE)
        return response

    def _refuse(self, next_page: str, client: str, words: str) -> Response:
        """The answer to a wrong key or link, which is counted unless the address is locked out already."""
        locked_seconds = ceil(self._throttle.locked_seconds(client))
        if locked_seconds:
            self._site.counters.record_rejection(Cause.THROTTLED)
            words = f"Too many wrong keys from here. Try again in {locked_seconds} s."
            response = self.form(next_page, 429, words)
            response.headers["Retry-After"] = str(locked_seconds)
            return response
        self._throttle.failed(client)
        self._site.counters.record_rejection(Cause.UNAUTHORIZED)
        if self._throttle.locked_seconds(client):
            log(LogEvent.AUTH_THROTTLED, client=client)
        return self.form(next_page, 403, words)


def login_routes(site: Site) -> Blueprint:
    blueprint = Blueprint("login", __name__)
    cookies = _Cookies(site)
    login = _Login(site, cookies)

    @blueprint.get("/login")
    async def show() -> Response:
        if site.sessions.find(request.cookies.get(COOKIE, "")) is not None:
            return see_other(site.url(_local(request.args.get("next", "")) or "/"))
        return login.form(request.args.get("next", ""))

    @blueprint.post("/login")
    async def log_in() -> Response:
        return await login.log_in()

    @blueprint.post("/logout")
    async def log_out() -> Response:
        await site.sessions.end(site.viewer)
        response = site.done(None, go=site.url("/login"))
        cookies.remove(response, COOKIE)
        return response

    _add_theme(blueprint, site, cookies)
    return blueprint


def _add_theme(blueprint: Blueprint, site: Site, cookies: _Cookies) -> None:
    @blueprint.post("/theme")
    async def choose_theme() -> Response:
        chosen = (await request.form).get("theme", "")
        response = site.done(None)
        if chosen in ("light", "dark"):
            cookies.set(response, THEME_COOKIE, chosen, _THEME_SECONDS)
        return response


async def _open_session(site: Site, key: str, link: str, client: str) -> str | None:
    """The id of a new session; None for a wrong key or link. Raises Forbidden for a token that may not browse.

    link: the token of a one-time link, which goes first; "" for none.
    """
    client = client[: limits.SESSION_CLIENT_LENGTH_MAX]
    agent = request.headers.get("User-Agent", "")[: limits.SESSION_AGENT_LENGTH_MAX]
    if link:
        return await site.sessions.open_by_link(link, client, agent)
    if not (0 < len(key) <= _KEY_LENGTH_MAX and key.isascii()):
        return None
    return await site.sessions.open(key, client, agent)


def _local(path: str) -> str:
    """`path` if it is a path of this server, else ""."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else ""


def client_address(*, trust_proxy_headers: bool) -> str:
    """The address that wrong keys are counted for, by the same rule as the API's (`http.access.client_address`)."""
    if trust_proxy_headers:
        last = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        if last:
            return network(last[:CLIENT_LENGTH_MAX])
    return network(request.remote_addr or "")
