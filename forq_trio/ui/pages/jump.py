"""Goes to a queue by its name, or to a message by its id or sequence number, and suggests names while one types."""

from collections.abc import Sequence
from heapq import nsmallest
from urllib.parse import urlsplit

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.errors import MessageNotFound
from forq_trio.model.messages.types import is_message_id
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site, see_other

NAMES_MAX = 20
QUEUES_ASKED_MAX = 50
_TEXT_LENGTH_MAX = 100


def names_with(names: Sequence[str], text: str) -> list[str]:
    """At most NAMES_MAX names that contain the text: those that begin with it first, then by name."""
    text = text.lower()
    found = (name for name in names if text in name.lower())
    return nsmallest(NAMES_MAX, found, key=lambda name: (not name.lower().startswith(text), name))


async def find_names(site: Site, text: str) -> list[str]:
    """The names to suggest to the viewer for this text; found once for all viewers who see the same queues."""
    if not text:
        return []
    directory, viewer = site.directory, site.viewer
    known = await directory.known()

    async def find() -> list[str]:
        best: list[str] = []

        def note(part: Sequence[str]) -> tuple[()]:
            best[:] = names_with([*best, *part], text)
            return ()

        await directory.slices.over(await directory.seen_of(known, viewer), note)
        return best

    return await known.answers.once(("names", viewer.sees, text), find)


def jump_routes(site: Site) -> Routes:
    routes = Routes("jump", site)

    slices = site.directory.slices

    async def message_by_id(message_id: str) -> Response:
        """Search the queue whose page was open, then a bounded number of queues, those with the most messages first."""
        path = urlsplit(request.headers.get("Referer", "")).path.removeprefix(site.url(""))
        open_now = path.split("/")[2] if path.startswith(("/queue/", "/dead/")) else ""
        known = await site.directory.known()
        names = await site.directory.seen_of(known, site.viewer)
        ranked = await slices.over(
            names, lambda part: [(name != open_now, -known.counts[name].total, name) for name in part]
        )
        for _, _, name in await slices.in_order(ranked, 0, QUEUES_ASKED_MAX):
            try:
                await site.broker.message(name, message_id)
            except MessageNotFound:
                continue
            return see_other(site.url(f"/queue/{name}/message/{message_id.lower()}"))
        places = format.plural(min(len(names), QUEUES_ASKED_MAX), "queue")
        if len(names) > QUEUES_ASKED_MAX:
            text = (
                f"It is in none of the {places} that have the most messages. Open its queue and search there."
            )
        else:
            text = f"It is in none of {places}: it was acked, moved, expired or deleted."
        return await site.page("error.html", "", status=404, title="No such message", text=text)

    async def message_by_sequence(sequence: int) -> Response | None:
        queue = await site.broker.lists.queue_of(sequence)
        if queue is None or not site.viewer.may_see(queue):
            return None
        wanted = MessageFilter(above_sequence=sequence - 1)
        found = await site.broker.lists.find_messages(
            queue, wanted, before_sequence=sequence + 1, limit=1, scan_max=1
        )
        if not found.rows:
            return None
        return see_other(site.url(f"/queue/{queue}/message/{found.rows[0].id}"))

    @routes.get("/go", None)
    async def go() -> Response:
        text = request.args.get("to", "").strip()[:_TEXT_LENGTH_MAX]
        if site.viewer.may_see(text) and site.broker.known.has_queue(text):
            return see_other(site.url(f"/queue/{text}"))
        if is_message_id(text):
            return await message_by_id(text)
        number = text.replace(",", "")
        if number.isascii() and number.isdigit() and int(number) < limits.SEQUENCE_MAX:
            found = await message_by_sequence(int(number))
            if found is not None:
                return found
        matching = await find_names(site, text)
        if len(matching) == 1:
            return see_other(site.url(f"/queue/{matching[0]}"))
        return see_other(site.url("/", q=text))

    @routes.get("/go/names", None)
    async def suggest() -> Response:
        text = request.args.get("to", "").strip()[:_TEXT_LENGTH_MAX]
        return site.part("go_names.html", names=await find_names(site, text))

    return routes
