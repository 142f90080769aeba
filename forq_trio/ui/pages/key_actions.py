"""Actions on a message with a key, and on the offer that waits behind it: deliver now, reschedule, drop, drop all.

Each names the revision that its page shows, so that a newer offer is never dropped or moved unseen.
"""

from typing import Any

from quart import Response, request

from forq_trio.broker.broker import Broker
from forq_trio.drawing import format
from forq_trio.model.access.types import Scope
from forq_trio.model.durations import parse_duration
from forq_trio.model.errors import CallerError, InvalidRequest, KeyNotFound, MessageNotFound
from forq_trio.model.keys.types import KeyInfo, OnceMore
from forq_trio.model.messages.types import MessageInfo
from forq_trio.ui.pages.emptying import is_about
from forq_trio.ui.pages.queue import back_to, check_known
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import GoneMessage, Site

_OFFERED_SINCE = "it was offered anew since the page was made: look at it again"


async def comes_after(broker: Broker, message: MessageInfo) -> OnceMore | None:
    """The offer that waits behind a message; None if there is none, or the message has no key."""
    keyed = message.keyed
    if keyed is None:
        return None
    found = await broker.keyed_message(message.queue, keyed.key, keyed.kind)
    return None if found is None or found.message.id != message.id else found.once_more


class _Target:
    """The message with a key, or the offer behind it, that a form is about."""

    def __init__(self, message: MessageInfo, keyed: KeyInfo, once_more: OnceMore | None, after: bool) -> None:
        self.message = message
        self.keyed = keyed
        self.after = after
        self.revision = keyed.revision if once_more is None or not after else once_more.revision
        self.due_at = message.process_after if once_more is None or not after else once_more.process_after

    @property
    def words(self) -> str:
        number = format.whole(self.message.sequence)
        return f"what comes after message {number}" if self.after else f"message {number}"


class _Actions:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._broker = site.broker

    async def _target(self, queue: str, message_id: str, after: bool) -> _Target:
        """Raises MessageNotFound without such a message, KeyNotFound without a key, or if nothing waits behind it."""
        message = await self._broker.message(queue, message_id)
        if message.keyed is None or self._broker.known.takes_dead_letters(queue):
            raise KeyNotFound
        once_more = await comes_after(self._broker, message)
        if after and once_more is None:
            raise KeyNotFound("nothing waits behind the message any more")
        return _Target(message, message.keyed, once_more, after)

    async def _move(self, target: _Target, delay_ms: int) -> None:
        keyed = target.keyed
        await self._broker.reschedule_key(
            target.message.queue, keyed.key, kind=keyed.kind, delay_ms=delay_ms, once_more=target.after
        )

    async def deliver(self, queue: str, message_id: str) -> Response:
        target = await self._target(queue, message_id, after=False)
        await self._move(target, 0)
        number = format.whole(target.message.sequence)
        return self._site.done(f"Message {number} is due now", go=self._go(target))

    async def drop(self, queue: str, message_id: str) -> Response:
        form = await request.form
        target = await self._target(queue, message_id, form.get("after") == "1")
        if form.get("revision") != str(target.revision):
            raise InvalidRequest(_OFFERED_SINCE)
        keyed = target.keyed
        if not await self._broker.drop_key(queue, keyed.key, keyed.kind, once_more=target.after):
            raise MessageNotFound
        on_page = form.get("in") == "page"
        go = self._site.url(f"/queue/{queue}") if on_page and not target.after else self._go(target)
        gone = None if target.after else GoneMessage(target.message.sequence, "dropped")
        return self._site.done(f"Dropped {target.words}", go=go, gone=gone)

    async def ask(self, queue: str, message_id: str) -> Response:
        target = await self._target(queue, message_id, request.args.get("after") == "1")
        return await self._dialog(target, "", {})

    async def reschedule(self, queue: str, message_id: str) -> Response:
        form = await request.form
        target = await self._target(queue, message_id, form.get("after") == "1")
        typed = form.get("delay", "").strip()[:100]
        if form.get("revision") != str(target.revision):
            return await self._dialog(target, typed, {"": format.sentence(_OFFERED_SINCE)}, 400)
        try:
            delay_ms = parse_duration(typed)
            await self._move(target, delay_ms)
        except ValueError as error:
            return await self._dialog(target, typed, {"delay": str(error)}, 400)
        except KeyNotFound:
            raise
        except CallerError as error:
            return await self._dialog(target, typed, {"delay": format.sentence(error.message)}, 400)
        said = f"Rescheduled {target.words}: due in {format.setting(delay_ms)}"
        return self._site.done(said, go=self._go(target))

    async def _dialog(
        self, target: _Target, typed: str, errors: dict[str, str], status: int = 200
    ) -> Response:
        title = "Reschedule what comes after" if target.after else "Reschedule message"
        context: dict[str, Any] = {
            "message": target.message,
            "path": f"/queue/{target.message.queue}/message/{target.message.id}",
            "comes_after": target.after,
            "due_at": target.due_at,
            "revision": target.revision,
            "texts": {"delay": typed},
            "errors": errors,
        }
        return await self._site.dialog("message/reschedule.html", title, status, **context)

    def _go(self, target: _Target) -> str | None:
        """Where to go: the message's own page is loaded again; a list is not (None)."""
        place = self._site.url(f"/queue/{target.message.queue}/message/{target.message.id}")
        return place if place in request.headers.get("HX-Current-URL", "") else None


def add_key_actions(routes: Routes, site: Site, base: str) -> None:
    """Add the routes below a message's path."""
    actions = _Actions(site)
    routes.post(f"{base}/deliver", Scope.CANCEL)(actions.deliver)
    routes.post(f"{base}/drop", Scope.CANCEL)(actions.drop)
    routes.get(f"{base}/reschedule", Scope.CANCEL)(actions.ask)
    routes.post(f"{base}/reschedule", Scope.CANCEL)(actions.reschedule)


def key_routes(site: Site) -> Routes:
    """Drop all messages with a key of one kind: the queue's name has to be typed."""
    routes = Routes("keys", site)

    async def dialog(queue: str, kind: str, status: int = 200, error: str = "") -> Response:
        counts = await site.key_counts.of(queue, fresh=True)
        title = f"Drop messages of {queue}"
        context: dict[str, Any] = {"queue": queue, "kind": kind, "keys": counts, "error": error}
        return await site.dialog("queue/drop_keys.html", title, status, **context)

    @routes.get("/queue/<queue>/keys/drop", Scope.ADMIN)
    async def ask(queue: str) -> Response:
        check_known(site, queue)
        counts = await site.key_counts.of(queue, fresh=True)
        first = next(iter(counts.kinds), "")
        return await dialog(queue, request.args.get("kind", first))

    @routes.post("/queue/<queue>/keys/drop", Scope.ADMIN)
    async def drop(queue: str) -> Response:
        form = await request.form
        kind, name = form.get("kind", ""), form.get("name", "")
        if name != queue:
            return await dialog(queue, kind, 400, "This is not the name of the queue.")
        counts = await site.key_counts.of(queue, fresh=True)
        if not is_about(form.get("count", ""), counts.kinds.get(kind, 0)):
            return await dialog(queue, kind, 400, "There are more or fewer by now. Look at the number again.")
        dropped = await site.broker.drop_keys(queue, kind, confirm=name)
        return site.done(f"Dropped {format.plural(dropped, 'message')}", go=back_to(site, queue))

    return routes
