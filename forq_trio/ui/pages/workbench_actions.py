"""Redrive and delete dead letters from the workbench: some that were selected, all that match, or all.

Rules
- Up to 1,000 selected messages are changed at once; all that match become a task (broker/redrives.py).
- A confirmation names a number. The messages are counted again before anything starts; if the number is more than 1 %
  off, nothing is done and the dialog asks again.
- A message in process is skipped, and the answer says so.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.bodies import MoveResult
from forq_trio.model.dead_letters.redrives import RedriveInfo
from forq_trio.model.durations import TEXT_LENGTH_MAX
from forq_trio.model.errors import InvalidQueueName, OutOfRange
from forq_trio.model.messages.types import check_message_id, check_queue_name
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.workbench import search as searches
from forq_trio.ui.workbench.filter import Filter, Parameters, read_filter
from forq_trio.ui.workbench.groups import Groups
from forq_trio.ui.workbench.search import Search, is_near, read_search
from forq_trio.ui.workbench.tasks import remaining

CONFIRM_TEXT = "Are you sure you want to permanently delete all messages? This cannot be undone."
"""Forq's words, exactly (contract F15)."""


_A_SECOND = re.compile(r" ?(/ ?|\b(?:a|per|each) )?(s|sec|second)\Z")


class Selection(Struct, frozen=True):
    """The messages that an action is about. ids: the ticked ones; empty for all that match."""

    ids: list[str]
    wanted: Filter
    search: Search

    @property
    def is_all(self) -> bool:
        return not self.ids

    @property
    def count(self) -> int:
        return len(self.ids) if self.ids else self.search.movable


def read_selection(form: Parameters, now_ms: int) -> Selection:
    """The selection that a form names. Raises OutOfRange for too many ids, or none where not all are meant."""
    ids = [] if form.get("all", "") == "1" else list(dict.fromkeys(form.getlist("id")))
    if len(ids) > limits.MOVE_BATCH_MAX:
        raise OutOfRange(f"at most {limits.MOVE_BATCH_MAX:,} messages at once: select all that match instead")
    if not ids and form.get("all", "") != "1":
        raise OutOfRange("no message is selected")
    for message_id in ids:
        check_message_id(message_id)
    return Selection(ids, read_filter(form, now_ms), read_search(form))


def read_rate(text: str) -> int | None:
    """How many messages a second; None for no limit. Raises ValueError with a sentence for the viewer."""
    typed = text.strip().lower()
    text = _A_SECOND.sub("", " ".join(typed[:TEXT_LENGTH_MAX].split())).replace(",", "")
    if not text:
        return None
    if (
        len(typed) > TEXT_LENGTH_MAX
        or not (text.isascii() and text.isdigit())
        or len(text) > 9
        or not 1 <= int(text) <= limits.REDRIVE_RATE_MAX
    ):
        raise ValueError(f"A whole number from 1 to {limits.REDRIVE_RATE_MAX:,}, or nothing for no limit.")
    return int(text)


def read_target(text: str, queue: str, viewer: Viewer) -> str | None:
    """The target queue; None to move each back to where it came from. Raises ValueError with a sentence."""
    text = text.strip()
    if not text:
        return None
    try:
        check_queue_name(text, "target")
    except InvalidQueueName as error:
        raise ValueError(f"{error.message}.") from None
    if text == queue:
        raise ValueError("They are in this queue already.")
    if not viewer.may(Scope.REDRIVE, text):
        raise ValueError("Your token may not move messages to this queue.")
    return text


def outcome(results: Sequence[MoveResult], word: str) -> str:
    """A sentence about what was done and what was not: "Redrove 3 messages, 1 was left: …"."""
    done = sum(result.ok for result in results)
    left = len(results) - done
    text = f"{word} {format.plural(done, 'message')}"
    if not left:
        return text
    why = "in process, gone, or nothing says where to" if word == "Redrove" else "in process or gone"
    return f"{text}; {format.whole(left)} {'was' if left == 1 else 'were'} left: {why}"


class Actions:
    def __init__(self, site: Site, groups: Groups) -> None:
        self._site = site
        self._groups = groups

    async def _selection(self) -> Selection:
        return read_selection(await request.form, self._site.clock.now_ms())

    async def _asked(self, queue: str) -> Selection:
        """The selection that a dialog asks about; all messages of the queue are counted as they are now."""
        chosen = await self._selection()
        if chosen.is_all and chosen.wanted.is_empty:
            return Selection([], chosen.wanted, searches.everything(self._site.broker, queue))
        return chosen

    async def _recounted(self, queue: str, chosen: Selection) -> Selection | None:
        """None if the count is still right; else the selection with the current count."""
        if not chosen.is_all:
            return None
        fresh = await searches.recount(self._site.broker, queue, chosen.wanted, chosen.search)
        if is_near(fresh.movable, chosen.search.movable):
            return None
        return Selection([], chosen.wanted, fresh)

    def _back(self, queue: str, wanted: Filter) -> str:
        return self._site.url(f"/dead/{queue}", **wanted.query())

    # Redrive

    async def ask_redrive(self, queue: str) -> Response:
        return await self._redrive_dialog(queue, await self._asked(queue), {}, {})

    async def _redrive_dialog(
        self, queue: str, chosen: Selection, given: dict[str, str], errors: dict[str, str], status: int = 200
    ) -> Response:
        return await self._site.dialog(
            "workbench/redrive.html",
            f"Redrive from {queue}",
            status,
            queue=queue,
            chosen=chosen,
            given=given,
            errors=errors,
            filtered=await _is_filtered(),
            rate_max=limits.REDRIVE_RATE_MAX,
        )

    async def redrive(self, queue: str) -> Response:
        form, chosen = await request.form, await self._selection()
        given = {name: form.get(name, "")[:300] for name in ("target", "rate")}
        errors: dict[str, str] = {}
        target = rate = None
        try:
            target = read_target(given["target"], queue, self._site.viewer)
        except ValueError as error:
            errors["target"] = str(error)
        try:
            rate = read_rate(given["rate"]) if chosen.is_all else None
        except ValueError as error:
            errors["rate"] = str(error)
        if errors:
            return await self._redrive_dialog(queue, chosen, given, errors, 400)
        changed = await self._recounted(queue, chosen)
        if changed is not None:
            errors["count"] = chosen_changed(chosen, changed)
            return await self._redrive_dialog(queue, changed, given, errors, 400)
        broker = self._site.broker
        if chosen.is_all:
            await broker.redrive_tasks.start(
                queue,
                chosen.wanted.question(chosen.search.above),
                target=target,
                rate_per_second=rate,
                started_by=self._site.viewer.started_by,
            )
            said = f"Redriving {format.plural(chosen.count, 'message')}"
        else:
            said = outcome(await broker.redrive(queue, chosen.ids, target=target), "Redrove")
        self._groups.forget(queue)
        return self._site.done(said, go=self._back(queue, chosen.wanted))

    # Delete

    async def ask_delete(self, queue: str) -> Response:
        return self._delete_dialog(queue, await self._asked(queue), "")

    def _delete_dialog(self, queue: str, chosen: Selection, error: str, status: int = 200) -> Response:
        return self._site.part("workbench/delete.html", status, queue=queue, chosen=chosen, error=error)

    async def delete(self, queue: str) -> Response:
        chosen = await self._selection()
        changed = await self._recounted(queue, chosen)
        if changed is not None:
            return self._delete_dialog(queue, changed, chosen_changed(chosen, changed), 400)
        broker = self._site.broker
        if chosen.is_all:
            await broker.redrive_tasks.start(
                queue,
                chosen.wanted.question(chosen.search.above),
                action="delete",
                started_by=self._site.viewer.started_by,
            )
            said = f"Deleting {format.plural(chosen.count, 'message')}"
        else:
            said = outcome(await broker.delete_dead_letters(queue, chosen.ids), "Deleted")
        self._groups.forget(queue)
        return self._site.done(said, go=self._back(queue, chosen.wanted))

    # Delete all

    async def ask_delete_all(self, queue: str) -> Response:
        return await self._delete_all_dialog(queue, "", "")

    async def _delete_all_dialog(self, queue: str, typed: str, error: str, status: int = 200) -> Response:
        counts = self._site.broker.known.counts_of(queue)
        return self._site.part(
            "workbench/delete_all.html",
            status,
            queue=queue,
            confirm_text=CONFIRM_TEXT,
            count=counts.total - counts.processing,
            held=counts.processing,
            cancelled=[remaining(task) for task in await self._open_tasks(queue)],
            typed=typed,
            error=error,
            filtered=await _is_filtered(),
        )

    async def _open_tasks(self, queue: str) -> list[RedriveInfo]:
        tasks = await self._site.broker.redrives(queue)
        return [task for task in tasks if task.state in ("running", "paused")]

    async def delete_all(self, queue: str) -> Response:
        form = await request.form
        typed = form.get("name", "")[:200]
        if typed != queue:
            return await self._delete_all_dialog(queue, typed, "This is not the name of the queue.", 400)
        broker = self._site.broker
        counts = broker.known.counts_of(queue)
        count = counts.total - counts.processing
        shown = form.get("count", "")
        if not shown.isascii() or not shown.isdigit() or not is_near(count, int(shown[:19])):
            error = f"There are {format.whole(count)} by now. Nothing was deleted."
            return await self._delete_all_dialog(queue, typed, error, 400)
        for task in await self._open_tasks(queue):
            await broker.cancel_redrive(queue, task.id)
        await broker.redrive_tasks.start(queue, action="delete", started_by=self._site.viewer.started_by)
        self._groups.forget(queue)
        return self._site.done(
            f"Deleting {format.plural(count, 'message')}", go=self._site.url(f"/dead/{queue}")
        )


async def _is_filtered() -> bool:
    """Whether the form means all messages, while the page's filter shows fewer."""
    return bool(request.args.get("filtered", "") or (await request.form).get("filtered", ""))


def chosen_changed(before: Selection, now: Selection) -> str:
    return (
        f"It was {format.plural(before.count, 'message')} when this was asked, and it is "
        f"{format.whole(now.count)} by now. Nothing was done."
    )


def add_actions(routes: Routes, site: Site, groups: Groups) -> None:
    actions = Actions(site, groups)
    routes.post("/dead/<queue>/redrive/ask", Scope.REDRIVE)(actions.ask_redrive)
    routes.post("/dead/<queue>/redrive", Scope.REDRIVE)(actions.redrive)
    routes.post("/dead/<queue>/delete/ask", Scope.REDRIVE)(actions.ask_delete)
    routes.post("/dead/<queue>/delete", Scope.REDRIVE)(actions.delete)
    routes.get("/dead/<queue>/delete-all", Scope.REDRIVE)(actions.ask_delete_all)
    routes.post("/dead/<queue>/delete-all", Scope.REDRIVE)(actions.delete_all)

    @routes.post("/dead/<queue>/edit", Scope.REDRIVE)
    async def edit(queue: str) -> Response:
        """The dialog that edits the one message that is selected."""
        chosen = read_selection(await request.form, site.clock.now_ms())
        if len(chosen.ids) != 1:
            raise OutOfRange("one message is edited at a time")
        where = site.url(f"/queue/{queue}/message/{chosen.ids[0]}/edit")
        return Response(status=303, headers={"Location": where})
