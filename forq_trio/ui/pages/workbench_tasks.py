"""Pause, resume, cancel and dismiss a redrive or deletion: each answers with its band as it is then."""

import json
from collections.abc import Awaitable, Callable

from quart import Blueprint, Response

from forq_trio.model.access import Scope
from forq_trio.ui.site import Site, is_part
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.workbench.tasks import band
from forq_trio.wire.dead_letters import RedriveInfo

Require = Callable[[Site, str, Scope], Viewer]


def add_tasks(blueprint: Blueprint, site: Site, require: Require) -> None:
    broker = site.broker

    async def change(
        queue: str, task_id: str, work: Callable[[str, str], Awaitable[RedriveInfo]], said: str
    ) -> Response:
        require(site, queue, Scope.REDRIVE)
        task = await work(queue, task_id)
        if not is_part():
            return site.done(None, go=site.url(f"/dead/{queue}"))
        response = site.part(
            "workbench/task_part.html",
            queue=queue,
            band=band(task, site.clock.now_ms()),
            may_change=True,
        )
        response.headers["HX-Trigger"] = json.dumps({"forq:done": {"toast": said, "go": None}})
        return response

    @blueprint.post("/dead/<queue>/tasks/<task_id>/pause")
    async def pause(queue: str, task_id: str) -> Response:
        return await change(queue, task_id, broker.pause_redrive, "Paused")

    @blueprint.post("/dead/<queue>/tasks/<task_id>/resume")
    async def resume(queue: str, task_id: str) -> Response:
        return await change(queue, task_id, broker.resume_redrive, "Goes on from where it was")

    @blueprint.post("/dead/<queue>/tasks/<task_id>/cancel")
    async def cancel(queue: str, task_id: str) -> Response:
        return await change(queue, task_id, broker.cancel_redrive, "Cancelled; what was done stays done")

    @blueprint.post("/dead/<queue>/tasks/<task_id>/dismiss")
    async def dismiss(queue: str, task_id: str) -> Response:
        require(site, queue, Scope.REDRIVE)
        await broker.dismiss_redrive(queue, task_id)
        if not is_part():
            return site.done(None, go=site.url(f"/dead/{queue}"))
        return Response("", 200, content_type="text/html; charset=utf-8")
