"""The UI's application: its routes, and the checks that every request has to pass.

Host       one of our names (421)
session    who is it? else to the login (401 for parts of a page)
Origin     an unsafe request is from one of our own pages (403)
CSRF       and that page was made for this session (403)
scopes     each route says which it takes (routes.py)
"""

import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import trio
from quart import Blueprint, Response, g, request
from quart_trio import QuartTrio
from quart_trio.asgi import TrioASGIHTTPConnection
from werkzeug.exceptions import HTTPException

from forq_trio.drawing import format
from forq_trio.http.errors import LockedOut
from forq_trio.model import limits
from forq_trio.model.access.types import CALLER
from forq_trio.model.errors import CallerError, Forbidden, ForqError, NotFound
from forq_trio.model.holders import HOLDER
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.ui import csrf
from forq_trio.ui.forms import FormRequest
from forq_trio.ui.live.events import live_routes
from forq_trio.ui.login import LOGIN_COOKIE, login_routes
from forq_trio.ui.loop_share import metered
from forq_trio.ui.pages import ALL_PAGES
from forq_trio.ui.rendering import Assets, html_response
from forq_trio.ui.sessions import COOKIE
from forq_trio.ui.site import Site, accepts_gzip, is_part, see_other

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PLAIN = (
    "the browser sent no cookie, for this page came over plain HTTP, and this server's cookies are for TLS alone"
    " (FORQ_ENV=pro): open it by https://, or start the server with FORQ_ENV=local to do without TLS"
)
_NO_COOKIE = "the browser sent no cookie: allow this site to set cookies, and load the page again"
_STATIC_SECONDS = 365 * 24 * 3600
_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]
_App = Callable[[Any, _Receive, _Send], Awaitable[None]]


class _MeteredConnection(TrioASGIHTTPConnection):
    """Charges the time of its requests on the event loop to a share."""

    async def handle_request(self, nursery: trio.Nursery, request: Any, send: Any) -> None:  # type: ignore[override]
        await metered(super().handle_request(nursery, request, send))


class BasePath:
    """Removes the base path from requests before the application sees them; a proxy may have removed it already.

    app: any ASGI application. base: without a slash at its end, "" for none.
    """

    def __init__(self, app: _App, base: str) -> None:
        self._app = app
        self._base = base

    async def __call__(self, scope: Any, receive: _Receive, send: _Send) -> None:
        path, base = scope.get("path", ""), self._base
        if base and (path == base or path.startswith(f"{base}/")):
            scope = {**scope, "path": path[len(base) :] or "/", "raw_path": b""}
        await self._app(scope, receive, send)


def make_app(site: Site, assets: Assets) -> QuartTrio:
    """The application for a site; an ASGI app that needs trio."""
    app = QuartTrio("forq_trio.ui", static_folder=None, template_folder=None)
    app.request_class = FormRequest
    app.config["MAX_CONTENT_LENGTH"] = limits.UI_BODY_BYTES_MAX
    app.config["MAX_FORM_MEMORY_SIZE"] = limits.UI_BODY_BYTES_MAX
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    hosts = csrf.Hosts(tuple(site.config.ui_hosts))
    _add_checks(app, site, hosts)
    _add_errors(app, site)
    app.register_blueprint(_static_routes(assets))
    for blueprint in (login_routes(site), live_routes(site), *(make(site).blueprint for make in ALL_PAGES)):
        app.register_blueprint(blueprint)

    @app.after_request
    async def secure(response: Response) -> Response:
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "no-store")
        if site.config.env == "pro":
            response.headers.setdefault("Strict-Transport-Security", "max-age=31536000")
        return response

    app.asgi_http_class = _MeteredConnection
    app.asgi_app = BasePath(app.asgi_app, site.templates.base)  # type: ignore[method-assign]
    return app


def _add_checks(app: QuartTrio, site: Site, hosts: csrf.Hosts) -> None:
    @app.before_request
    async def check() -> Any:
        if not hosts.allow(request.host):
            return Response(
                f"{request.host} is no name of this server: FORQ_UI_HOSTS names those that are allowed.\n",
                HTTPStatus.MISDIRECTED_REQUEST,
                content_type="text/plain; charset=utf-8",
            )
        if request.path.startswith("/static/"):
            return None
        if request.method not in SAFE_METHODS:
            await request.form  # even if it is refused, because the connection could not be reused otherwise
        at_login = request.path == "/login"
        session_id = request.cookies.get(COOKIE, "")
        viewer = site.sessions.find(session_id)
        if viewer is None and not at_login:
            viewer = await site.sessions.find_elsewhere(session_id)
            if viewer is None:
                return _to_login(site)
        g.viewer = viewer
        if viewer is not None:
            CALLER.set(f"session {viewer.digest}")
            HOLDER.set(viewer.holder)
        if request.method not in SAFE_METHODS:
            await _check_origin(LOGIN_COOKIE if at_login else COOKIE, secure=site.config.env == "pro")
        return None


async def _check_origin(cookie: str, *, secure: bool) -> None:
    """Raise Forbidden unless one of our own pages, made for this session, sends the request.

    secure: whether browsers keep our cookies over TLS only.
    """
    headers = request.headers
    if not csrf.is_same_origin(headers.get("Origin"), headers.get("Referer"), request.host):
        raise Forbidden("the request is not from a page of this server; a proxy in front has to hand on Host")
    token = headers.get("X-CSRF-Token")
    if token is None:
        token = (await request.form).get("csrf", "")
    known = request.cookies.get(cookie)
    if known is None:
        plain = secure and csrf.is_plain(headers.get("Origin"), headers.get("Referer"))
        raise Forbidden(_PLAIN if plain else _NO_COOKIE)
    if not csrf.is_valid(token, known):
        raise Forbidden("the page is too old: load it again")


def _to_login(site: Site) -> Response:
    wanted = request.full_path.removesuffix("?") if request.method == "GET" and not is_part() else "/"
    ended = "1" if request.cookies.get(COOKIE) else None
    target = site.url("/login", next=None if wanted == "/" else wanted, ended=ended)
    if is_part() or request.path.startswith("/live/"):
        return Response(b"", 401, headers={"HX-Redirect": target})
    return see_other(target)


def _static_routes(assets: Assets) -> Blueprint:
    blueprint = Blueprint("static_files", __name__)

    @blueprint.get("/static/<version>/<path:name>")
    async def static_file(version: str, name: str) -> Response:
        asset = assets.files.get(name)
        if asset is None:
            return Response(b"", 404)
        body, compressed = asset.content, asset.compressed
        response = Response(body, content_type=asset.content_type)
        if compressed is not None and accepts_gzip():
            response = Response(compressed, content_type=asset.content_type)
            response.headers["Content-Encoding"] = "gzip"
        if version == assets.version:
            response.headers["Cache-Control"] = f"public, max-age={_STATIC_SECONDS}, immutable"
        response.headers["Vary"] = "Accept-Encoding"
        return response

    return blueprint


def _add_errors(app: QuartTrio, site: Site) -> None:
    @app.errorhandler(ForqError)
    async def known(error: ForqError) -> Response:
        return await _error_answer(site, _status(error), _title(error), format.sentence(error.message))

    @app.errorhandler(HTTPException)
    async def http_error(error: HTTPException) -> Response:
        status = error.code or 500
        text = "There is no page at this address." if status == HTTPStatus.NOT_FOUND else ""
        return await _error_answer(site, status, HTTPStatus(status).phrase.capitalize(), text)

    @app.errorhandler(Exception)
    async def unknown(error: Exception) -> Response:
        reference = secrets.token_hex(4)
        log(LogEvent.UI_REQUEST_FAILED, exception=error, reference=reference, path=request.path)
        text = f"This is a fault of the server; its log has it under {reference}. Nothing more is known."
        return await _error_answer(site, 500, "The page could not be made", text)


def _status(error: ForqError) -> int:
    if isinstance(error, LockedOut):
        return 429
    if isinstance(error, Forbidden):
        return 403
    if isinstance(error, NotFound):
        return 404
    return 400 if isinstance(error, CallerError) else 503


def _title(error: ForqError) -> str:
    if isinstance(error, Forbidden):
        return "Not allowed"
    if isinstance(error, NotFound):
        return "Not found"
    return "That cannot be done" if isinstance(error, CallerError) else "The queue cannot answer now"


async def _error_answer(site: Site, status: int, title: str, text: str) -> Response:
    """The error as a part of a page, as a page, or as text if nobody is logged in."""
    if is_part():
        return site.part("error_part.html", status, title=title, text=text)
    if g.get("viewer") is None:
        return Response(f"{title}. {text}\n", status, content_type="text/plain; charset=utf-8")
    try:
        return await site.page("error.html", "", status=status, title=title, text=text)
    except ForqError:
        page = site.templates.render("error_part.html", **site.common(), title=title, text=text)
        return html_response(page, accepts_gzip(), status)
