"""Messages of forq.send that were set aside, on the System page: send them again, or delete them."""

from collections.abc import Awaitable, Callable, Sequence

from quart import Response, request

from forq_trio.drawing import format
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import OutOfRange
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site

SHOWN = 20
_DIGITS_MAX = len(str(limits.SEQUENCE_MAX))


def read_id(text: str) -> int:
    """An id as a page sends it. Raises OutOfRange."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise OutOfRange("this is not the id of a message")
    return int(text)


def set_aside_routes(site: Site) -> Routes:
    routes = Routes("set_aside", site)
    actions: dict[str, Callable[[Sequence[int]], Awaitable[int]]] = {
        "retry": site.broker.retry_set_aside,
        "delete": site.broker.delete_set_aside,
    }

    async def take(action: str) -> int:
        """Act on one message, or on all up to the newest that the dialog counted; returns how many there were."""
        form = await request.form
        if "id" in form:
            return await actions[action]([read_id(form["id"])])
        newest = read_id(form.get("newest", ""))
        count = after = 0
        while page := await site.broker.set_aside(after=after, limit=limits.SET_ASIDE_PAGE_MAX):
            ids = [each.id for each in page if each.id <= newest]
            count += await actions[action](ids)
            after = page[-1].id
            if after >= newest:
                break
        return count

    async def done(count: int, what: str) -> Response:
        await site.system.jobs.run_now("metrics.depth")
        return site.done(f"{format.plural(count, 'message')} {what}", go=site.url("/system"))

    @routes.get("/system/set-aside/<any(retry, delete):action>", Scope.ADMIN)
    async def ask(action: str) -> Response:
        named = request.args.get("id")
        if named is not None:
            id, count, newest = read_id(named), 1, 0
        else:
            id, (count, newest) = None, await site.broker.lists.count_set_aside()
        return site.part("system/take_set_aside.html", action=action, id=id, newest=newest, count=count)

    @routes.post("/system/set-aside/retry", Scope.ADMIN)
    async def retry() -> Response:
        return await done(await take("retry"), "sent again")

    @routes.post("/system/set-aside/delete", Scope.ADMIN)
    async def delete() -> Response:
        return await done(await take("delete"), "deleted")

    return routes
