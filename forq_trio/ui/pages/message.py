"""One message: as a page, in place below its row, and its content as a file."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import MalformedMessageId, MessageNotFound
from forq_trio.model.keys.types import OnceMore
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.messages.types import MessageInfo
from forq_trio.ui import content, timeline
from forq_trio.ui.attributes import attribute_context
from forq_trio.ui.curl import curl_command
from forq_trio.ui.event_timeline import event_timeline, is_whole
from forq_trio.ui.key_words import key_context
from forq_trio.ui.live.page_view import PageView
from forq_trio.ui.pages.key_actions import add_key_actions, comes_after
from forq_trio.ui.pages.message_actions import add_actions
from forq_trio.ui.queue_workers import holder_of
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

_FILE_POLICY = "default-src 'none'; sandbox"


class Allowed(Struct, frozen=True):
    """What the viewer may do with a message."""

    redrive: bool  # these 3: of a dead letter
    edit: bool
    delete: bool
    copy: bool  # send an edited copy
    cancel: bool
    cancel_running: bool  # of a message in flight
    move: bool  # deliver a message with a key now, reschedule or drop it
    after: bool  # reschedule or drop what waits behind it
    home: str | None  # the queue to which a copy goes by default; None if not known
    note: str  # why some actions are not offered


def home_of(site: Site, message: MessageInfo) -> str | None:
    """The queue that a copy of a message goes to: its own; of a dead letter, the one it came from."""
    return message.source_queue if site.broker.known.takes_dead_letters(message.queue) else message.queue


def allowed(site: Site, viewer: Viewer, message: MessageInfo, once_more: OnceMore | None = None) -> Allowed:
    """What the viewer may do with a message in its current state. once_more: the offer that waits behind it."""
    home = home_of(site, message)
    is_dead = site.broker.known.takes_dead_letters(message.queue)
    in_flight = message.status == "processing"
    may_redrive = viewer.may(Scope.REDRIVE, message.queue)
    may_send = home is not None and viewer.may(Scope.PRODUCE, home)
    note = ""
    may_cancel = not is_dead and viewer.may(Scope.CANCEL, message.queue)
    has_key = message.keyed is not None
    if in_flight and once_more is not None and may_cancel:
        note = "A message in flight cannot be moved or deleted here. What comes after it can."
    elif in_flight and may_cancel:
        note = "A message in flight cannot be moved or deleted."
    elif in_flight:
        note = "A message in flight cannot be moved, deleted or cancelled."
    elif is_dead and not may_redrive:
        note = "Redriving and deleting take the scope redrive."
    elif not is_dead and not may_cancel and has_key:
        note = "Rescheduling and dropping take the scope cancel."
    elif not is_dead and not may_send:
        note = "Sending a copy takes the scope produce."
    elif not is_dead and not may_cancel:
        note = "Cancelling takes the scope cancel."
    elif is_dead and home is None:
        note = "It is not known where it came from: an edited copy can be sent to any queue."
    changes = is_dead and may_redrive and not in_flight
    return Allowed(
        redrive=changes and home is not None,
        edit=changes,
        delete=changes,
        copy=may_send and not changes,
        cancel=may_cancel and not in_flight and not has_key,
        cancel_running=may_cancel and in_flight,
        move=may_cancel and not in_flight and has_key,
        after=may_cancel and once_more is not None,
        home=home,
        note=note,
    )


def message_context(
    site: Site,
    viewer: Viewer,
    message: MessageInfo,
    args: Mapping[str, str],
    events: Sequence[MessageEvent] = (),
    once_more: OnceMore | None = None,
) -> dict[str, Any]:
    """The context of a message's templates. events: its stored events. once_more: the offer that comes after it."""
    by_events = is_whole(events)
    now_ms = site.clock.now_ms()
    home = home_of(site, message)
    text = args.get("q", "")[: limits.SEARCH_TEXT_LENGTH_MAX]
    content_bytes = len(content.to_bytes(message.content))
    return {
        "message": message,
        "by_worker": holder_of(site, message),
        "path": f"/queue/{message.queue}/message/{message.id}",
        "is_dead": site.broker.known.takes_dead_letters(message.queue),
        "shown": content.show(message.content, args.get("view", ""), text),
        "views": content.VIEWS,
        "text": text,
        "steps": event_timeline(events, once_more)
        if by_events
        else timeline.timeline(message, now_ms, once_more),
        "forgotten": not by_events and timeline.forgotten(message),
        "reason_words": timeline.reason_words,
        "attempts_max": message.max_attempts or site.broker.known.rules(message.queue).max_attempts,
        "damaged_attributes": not message.attributes and message.bytes > content_bytes,
        **attribute_context(message.attributes),
        "allowed": allowed(site, viewer, message, once_more),
        "may_see_home": home is not None and viewer.may_see(home),
        **key_context(message, once_more),
    }


async def events_of(site: Site, viewer: Viewer, queue: str, message_id: str) -> list[MessageEvent]:
    """The events of a message in queues that the viewer may see. If none are stored, there is no query."""
    if not site.broker.known.log("events").last:
        return []
    try:
        found = await site.broker.message_events(queue, message_id)
        return [event for event in found if viewer.may_see(event.queue)]
    except MessageNotFound:
        return []


def message_view(site: Site, viewer: Viewer, args: Mapping[str, str]) -> PageView:
    """The live part of a message's page: its state, and whether the message has changed or is gone."""
    queue, since = args.get("queue", ""), args.get("since", "")
    viewer.require(Scope.BROWSE, queue)

    async def read() -> dict[str, Any]:
        message, once_more = None, None
        with suppress(MessageNotFound, MalformedMessageId):
            message = await site.broker.message(queue, args.get("id", ""))
            once_more = await comes_after(site.broker, message)
        return {
            "message": message,
            "by_worker": None if message is None else holder_of(site, message),
            "once_more": once_more,
            "gone": message is None,
            "changed": message is not None and version_of(message, once_more) != since,
            "now_ms": site.clock.now_ms(),
            "is_dead": site.broker.known.takes_dead_letters(queue),
            "reason_words": timeline.reason_words,
        }

    return PageView(site, viewer, "message/live.html", read)


def version_of(message: MessageInfo, once_more: OnceMore | None) -> str:
    """A text that differs after each change that the page has to show, but not after an extension of the lease."""
    offers = 0 if message.keyed is None else message.keyed.offers
    after = "" if once_more is None else f"-{once_more.offers}-{once_more.process_after}"
    return (
        f"{message.status}-{message.attempts}-{len(message.failures)}-{message.process_after}-{offers}{after}"
    )


def message_routes(site: Site) -> Routes:
    routes = Routes("message", site)
    base = "/queue/<queue>/message/<message_id>"

    @routes.get(base, Scope.BROWSE)
    async def message(queue: str, message_id: str) -> Response:
        """A page; with part=1 the same in place, with part=content only the content in another view."""
        part = request.args.get("part", "")
        try:
            found = await site.broker.message(queue, message_id)
        except MessageNotFound:
            return await gone(queue, message_id, part)
        events = await events_of(site, site.viewer, queue, message_id)
        once_more = await comes_after(site.broker, found)
        context = message_context(site, site.viewer, found, request.args, events, once_more)
        if part:
            in_place = part == "1" or request.args.get("in") == "place"
            template = "message/content.html" if part == "content" else "message/part.html"
            return site.part(template, in_place=in_place, **context)
        live = site.url("/live/message", queue=queue, id=found.id, since=version_of(found, once_more))
        here = "dead" if context["is_dead"] else "queues"
        return await site.page(
            "message/page.html", here, live=live, in_place=False, gone=False, changed=False, **context
        )

    async def is_in_history(queue: str, message_id: str) -> bool:
        if not site.broker.known.history_of(queue).messages:
            return False
        try:
            await site.broker.finished_message(queue, message_id)
        except MessageNotFound:
            return False
        return True

    async def gone(queue: str, message_id: str, part: str) -> Response:
        """404, with a link to where it went if that is where such messages go."""
        is_dead = site.broker.known.takes_dead_letters(queue)
        moved_to = ""
        target = "" if is_dead else site.broker.known.rules(queue).dead_letter_queue
        if target and site.viewer.may_see(target):
            try:
                moved_to = (await site.broker.message(target, message_id)).queue
            except MessageNotFound:
                moved_to = ""
        context: dict[str, Any] = {
            "queue": queue,
            "message_id": message_id,
            "moved_to": moved_to,
            "is_dead": is_dead,
            "steps": event_timeline(await events_of(site, site.viewer, queue, message_id)),
            "in_history": await is_in_history(queue, message_id),
            "forgotten": False,
        }
        if part:
            return site.part("message/gone_part.html", 404, **context)
        return await site.page("message/gone.html", "dead" if is_dead else "queues", status=404, **context)

    _add_files(routes, site, base)
    add_actions(routes, site, base, home_of)
    add_key_actions(routes, site, base)
    return routes


def _add_files(routes: Routes, site: Site, base: str) -> None:
    """Add the routes that answer with a file."""

    @routes.get(f"{base}/content", Scope.BROWSE)
    async def file(queue: str, message_id: str) -> Response:
        """The content as a file, as it was sent."""
        found = await site.broker.message(queue, message_id)
        data = content.to_bytes(found.content)
        if content.is_binary(found.content):
            return attachment(data, "application/octet-stream", f"message-{found.sequence}.bin")
        is_json = found.content.lstrip()[:1] in ("{", "[")
        return attachment(
            data, "text/plain; charset=utf-8", f"message-{found.sequence}.{'json' if is_json else 'txt'}"
        )

    @routes.get(f"{base}/curl", Scope.BROWSE)
    async def curl(queue: str, message_id: str) -> Response:
        """The command that sends it again."""
        found = await site.broker.message(queue, message_id)
        target = home_of(site, found) or found.queue.removesuffix("-dlq")
        command = curl_command(found, target, site.api_url, site.clock.now_ms())
        return attachment(
            content.to_bytes(command), "text/plain; charset=utf-8", f"message-{found.sequence}.sh"
        )


def attachment(data: bytes, content_type: str, name: str) -> Response:
    """A file that no browser shows or runs. name: of letters, digits, dots and hyphens."""
    response = Response(data, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Content-Security-Policy"] = _FILE_POLICY
    return response
