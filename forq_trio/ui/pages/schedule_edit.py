"""The form for a new or existing schedule, which shows the next runs while one types."""

from typing import Any

from msgspec.structs import replace
from quart import Response, request

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import CallerError, Forbidden
from forq_trio.model.schedules.types import Schedule
from forq_trio.schedules.words import in_words, zone_words
from forq_trio.schedules.zones import zone_of
from forq_trio.ui import schedule_form
from forq_trio.ui.pages.schedule import require
from forq_trio.ui.routes import Routes
from forq_trio.ui.schedule_form import KINDS, MISSED, PENDING, TypedSchedule
from forq_trio.ui.schedule_views import days_in
from forq_trio.ui.site import Site

_DIGITS_MAX = len(str(limits.SCHEDULE_TIME_MS_MAX))
_CHOICES: dict[str, Any] = {"kinds": KINDS, "missed": MISSED, "pending": PENDING}


async def preview_of(site: Site, found: TypedSchedule) -> dict[str, Any]:
    """The next runs of the typed schedule, if it can be read."""
    timing = found.schedule.timing
    if found.errors.keys() & {*KINDS, "time_zone", "start", "end", "jitter"}:
        return {"coming": (), "words": "", "caret": found.caret}
    made_at, now_ms = found.texts["made_at"], site.clock.now_ms()
    latest = now_ms if timing.end is None else min(now_ms, timing.end)
    if timing.start is None and made_at.isdecimal() and int(made_at[:_DIGITS_MAX]) <= latest:
        timing = replace(timing, start=int(made_at[:_DIGITS_MAX]))  # from which `every` counts
    coming = await site.broker.next_runs(timing, limits.NEXT_RUNS_MAX)
    change = next((each for each in coming[limits.NEXT_RUNS_DEFAULT :] if each.note), None)
    return {
        "coming": coming[: limits.NEXT_RUNS_DEFAULT],
        "words": in_words(timing),
        "change": change,
        "caret": "",
        "zone_words": zone_words(timing.time_zone),
        "day": days_in(zone_of(timing.time_zone), now_ms),
    }


def schedule_edit_routes(site: Site) -> Routes:
    routes = Routes("schedule_edit", site)

    async def form(found: TypedSchedule, before: Schedule | None, status: int = 200) -> Response:
        return await site.page(
            "schedules/form.html",
            "schedules",
            status=status,
            found=found,
            texts=found.texts,
            errors=found.errors,
            before=before,
            **_CHOICES,
            **await preview_of(site, found),
        )

    @routes.get("/schedules/<name>/edit", None)
    async def edit(name: str) -> Response:
        schedule = (await require(site, name, Scope.SCHEDULE, Scope.PRODUCE)).schedule
        return await form(TypedSchedule(schedule_form.texts_of(schedule), {}, schedule), schedule)

    @routes.get("/schedule-new", None)
    async def new() -> Response:
        site.viewer.require_somewhere(Scope.SCHEDULE, Scope.PRODUCE)
        texts = schedule_form.empty() | {"queue": request.args.get("queue", "")[:100]}
        found = schedule_form.read(texts)
        found.errors = {"daily": ""}
        return await form(found, None)

    @routes.post("/schedule-preview", None)
    async def preview() -> Response:
        site.viewer.require_somewhere(Scope.SCHEDULE)
        found = schedule_form.read(await request.form)
        if not found.texts[found.texts["kind"]]:
            found.errors[found.texts["kind"]] = ""
        return site.part(
            "schedules/preview.html",
            found=found,
            errors=found.errors,
            swapped=True,
            **await preview_of(site, found),
        )

    async def save(name: str | None) -> Response:
        before = (await require(site, name, Scope.SCHEDULE, Scope.PRODUCE)).schedule if name else None
        found = schedule_form.read(await request.form, before)
        if not found.errors:
            try:
                for scope in (Scope.SCHEDULE, Scope.PRODUCE):
                    site.viewer.require(scope, found.schedule.queue)
                saved = await site.broker.save_schedule(
                    name or found.texts["name"], found.schedule, only_new=name is None
                )
                return site.done(f"Saved {saved.name}", go=site.url(f"/schedules/{saved.name}"))
            except Forbidden as error:
                found.errors["queue"] = schedule_form.sentence_of(error)
            except CallerError as error:
                schedule_form.add_error(found, error)
        return await form(found, before, 400)

    @routes.post("/schedule-new", None)
    async def make() -> Response:
        return await save(None)

    @routes.post("/schedules/<name>/edit", None)
    async def change(name: str) -> Response:
        return await save(name)

    return routes
