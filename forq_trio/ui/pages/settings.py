"""The settings of a queue: the dialog that changes them."""

from typing import Any

from quart import Response, request

from forq_trio.model.access.types import Scope
from forq_trio.model.errors import CallerError
from forq_trio.ui import settings_form
from forq_trio.ui.pages.queue import back_to, check_known
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site


def settings_routes(site: Site) -> Routes:
    routes = Routes("settings", site)

    async def form(queue: str, texts: dict[str, str], status: int = 200, **context: Any) -> Response:
        defaults = settings_form.default_rules(queue, site.config)
        is_bound = site.broker.known.settings_of(queue).table is not None
        values: dict[str, Any] = {"errors": {}, "losses": [], "at": ""} | context
        return await site.dialog(
            "queue/settings.html",
            f"Settings of {queue}",
            status,
            queue=queue,
            texts=texts,
            placeholders=settings_form.placeholders(defaults),
            sections=settings_form.SECTIONS_OF_TABLES if is_bound else settings_form.SECTIONS,
            is_bound=is_bound,
            back_offs=settings_form.BACK_OFFS,
            **values,
        )

    @routes.get("/queue/<queue>/settings", Scope.ADMIN)
    async def show(queue: str) -> Response:
        """The dialog. `lease_ms`: what to suggest as the lease; `at`: the field to begin with."""
        check_known(site, queue)
        texts = settings_form.texts_of(site.broker.known.settings_of(queue))
        lease = request.args.get("lease_ms", "")[:40]
        at = request.args.get("at", "")
        if lease:
            texts["lease_ms"], at = lease, "lease_ms"
        return await form(queue, texts, at=at if at in settings_form.NAMES else "")

    @routes.post("/queue/<queue>/settings", Scope.ADMIN)
    async def save(queue: str) -> Response:
        sent = await request.form
        read = settings_form.read(queue, sent)
        if read.change is None:
            return await form(queue, read.texts, 400, errors=read.errors, at=next(iter(read.errors), ""))
        before = site.broker.known.rules(queue)
        defaults = settings_form.default_rules(queue, site.config)
        after = settings_form.rules_after(read.change, defaults, before.paused)
        losses = settings_form.losses(site.broker.known.counts_of(queue), before, after)
        if losses and not sent.get("sure"):
            return await form(queue, read.texts, 400, losses=losses)
        try:
            await site.broker.change_settings(queue, read.change)
        except CallerError as error:
            name, sentence = settings_form.error_of(error, read.texts)
            return await form(queue, read.texts, 400, errors={name: sentence}, at=name)
        return site.done(f"Saved the settings of {queue}", go=back_to(site, queue))

    @routes.post("/queue/<queue>/settings/reset", Scope.ADMIN)
    async def reset(queue: str) -> Response:
        await site.broker.reset_settings(queue)
        return site.done(f"{queue} has the default settings again", go=back_to(site, queue))

    return routes
