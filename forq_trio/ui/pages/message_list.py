"""The messages of a queue: a tab for each state, 50 a page as one scrolls, and a search that is bounded."""

import re
from collections.abc import Mapping, Sequence
from typing import cast

from markupsafe import Markup, escape
from msgspec import Struct
from quart import Response, request

from forq_trio.drawing.unseen import visible
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.searches import ListedState, MessageFilter, MessageRow
from forq_trio.model.errors import CallerError, MessageNotFound, StorageFull
from forq_trio.model.messages.types import MessageInfo, QueueCounts, Status, is_message_id
from forq_trio.ui.key_counts import KeyCount
from forq_trio.ui.key_words import MODE_WORDS
from forq_trio.ui.queue_limits import HoldUp, Limits, limits_of
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

STATES = ("all", "ready", "delayed", "processing", "held", "failed")
_QUERY_LENGTH_MAX = 1_024
_CURSOR_LENGTH_MAX = 100
_KEY = re.compile(r"key:\s?(\S.*)", re.DOTALL)
_ATTRIBUTE = re.compile(r"([A-Za-z0-9_.-]{1,64}):(?!//)\s?(\S.*)", re.DOTALL)


class ListedMessages(Struct, frozen=True):
    """The list that the URL asks for.

    shown: how many rows the earlier pages have. searched: how many messages were read for them.
    """

    state: str = "all"  # the tab
    q: str = ""  # what to search for; "" for no search
    as_text: bool = False  # q is a text, even if it looks like an attribute
    cursor: str = ""  # where the page begins; "" for the first page
    shown: int = 0
    searched: int = 0

    def query(self, **changes: object) -> dict[str, object]:
        """The URL's parameters, without those that have their default; `changes` override."""
        values: dict[str, object] = {
            "state": self.state if self.state != "all" else "",
            "q": self.q,
            "as": "text" if self.as_text else "",
        }
        return {**values, **changes}


def read_listed(args: Mapping[str, str]) -> ListedMessages:
    """The parameters of a request; what is not valid is the default."""
    state = args.get("state", "")
    return ListedMessages(
        state if state in STATES else "all",
        args.get("q", "").strip()[:_QUERY_LENGTH_MAX],
        args.get("as") == "text",
        args.get("cursor", "")[:_CURSOR_LENGTH_MAX],
        _number(args.get("shown", "")),
        _number(args.get("searched", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


class MessageQuery(Struct, frozen=True):
    """The meaning of a typed query."""

    words: str  # for people
    id: str | None = None  # of a message; else the filter says it
    key: str | None = None  # a message's key, or with key_begins the beginning of keys
    key_begins: bool = False
    filter: MessageFilter | None = None
    text: str = ""  # the text to mark in the rows


def read_query(listed: ListedMessages, *, has_keys: bool = False) -> MessageQuery:
    """Read a query: the id of a message, `attribute:value`, or a text in the content.

    has_keys: the queue has messages with a key, so `key:customer/4117` means one, and `key:customer/41*` all whose keys
    begin like this.
    """
    q, status = listed.q, None if listed.state == "all" else Status[listed.state.upper()]
    if is_message_id(q):
        return MessageQuery("Id", id=q.lower())
    key = _KEY.fullmatch(q) if has_keys and not listed.as_text else None
    if key is not None:
        begins = key[1].endswith("*")
        return MessageQuery("Key", key=key[1].removesuffix("*"), key_begins=begins)
    attribute = None if listed.as_text else _ATTRIBUTE.fullmatch(q)
    if attribute is not None:
        name, value = attribute.groups()
        return MessageQuery(
            f"Attribute {name} is “{value}”", filter=MessageFilter(attributes={name: value}, status=status)
        )
    return MessageQuery(f"Content has “{q}”", filter=MessageFilter(text=q, status=status), text=q)


NO_SPACE = (
    "a pipeline has leased some of these messages, and the full disk has no space to show them; "
    "they can be acknowledged, given back and purged"
)


class RowsPage(Struct):
    """A page of rows."""

    rows: Sequence[MessageRow]
    shown: int  # with those of the pages before
    total: int  # of the tab, as far as known
    next: dict[str, object] | None  # parameters of the next page, None at the end
    goes_on: bool = True  # the next page loads by itself
    words: str = ""  # the search in words; "" for no search
    is_attribute: bool = False
    searched: int = 0  # these 3: how far
    of: int = 0
    oldest_at: int | None = None
    text: str = ""
    error: str = ""  # why it could not be searched, or shown
    limits: Limits | None = None  # if the list says what holds messages back
    keys: KeyCount = KeyCount()  # the queue has messages with a key, and how many
    key: str | None = None  # the beginning of their keys, if that was the search

    def held(self, row: MessageRow, place: int) -> HoldUp | None:
        """What holds a message of this page back; None if the list does not say that. place: in the page, from 1."""
        before = self.shown - len(self.rows)
        return None if self.limits is None else self.limits.held(row.status, before + place)

    @property
    def ends_the_page(self) -> bool:
        """Whether the page has as many rows as it may load by itself; the next ones are on another page."""
        return (
            self.next is not None
            and self.shown // limits.LIST_ROWS_MAX > (self.shown - len(self.rows)) // limits.LIST_ROWS_MAX
        )

    def key_of(self, row: MessageRow) -> Markup:
        """The key of a message, with what was searched marked."""
        return Markup("") if row.keyed is None else begins_marked(row.keyed.key, self.key or "")

    def preview(self, row: MessageRow) -> Markup:
        """The first line of the preview, with what was searched marked."""
        return marked(" ".join(row.preview.split()) if not self.text else row.preview, self.text)


def marked(text: str, wanted: str) -> Markup:
    """The text as people see it, escaped, with each occurrence of `wanted` in a <mark>."""
    if not wanted:
        return escape(visible(text))
    mark = Markup("<mark>{}</mark>").format(visible(wanted))
    return mark.join(escape(visible(part)) for part in text.split(wanted))


def begins_marked(text: str, wanted: str) -> Markup:
    """The text as people see it, escaped, with `wanted` in a <mark> if it begins so."""
    if not wanted or not text.startswith(wanted):
        return escape(visible(text))
    rest = escape(visible(text[len(wanted) :]))
    return Markup("<mark>{}</mark>{}").format(visible(wanted), rest)


def count_of(counts: QueueCounts, state: str) -> int:
    """How many messages a tab has."""
    return counts.total if state == "all" else cast("int", getattr(counts, state))


class MessagePages:
    """Reads pages of a queue's messages."""

    def __init__(self, site: Site, viewer: Viewer, queue: str) -> None:
        self._site = site
        self._viewer = viewer
        self._queue = queue

    async def page(self, listed: ListedMessages) -> RowsPage:
        keys = await self._site.key_counts.of(self._queue, fresh=not listed.cursor)
        try:
            page = await (self._search(listed, keys) if listed.q else self._all(listed))
        except StorageFull:
            page = RowsPage([], 0, 0, None, error=NO_SPACE)
        page.keys = keys
        return page

    async def _all(self, listed: ListedMessages) -> RowsPage:
        found = await self._site.broker.lists.list_messages(
            self._queue,
            cast("ListedState", listed.state),
            cursor=listed.cursor or None,
            limit=limits.LIST_PAGE_DEFAULT,
        )
        shown = listed.shown + len(found.rows)
        total = max(shown, count_of(self._site.broker.known.counts_of(self._queue), listed.state))
        following = None if found.next is None else listed.query(cursor=found.next, shown=shown)
        limits_now = limits_of(self._site, self._queue)
        says = listed.state in ("ready", "held") and limits_now.are_set
        return RowsPage(found.rows, shown, total, following, limits=limits_now if says else None)

    async def _search(self, listed: ListedMessages, keys: KeyCount) -> RowsPage:
        wanted = read_query(listed, has_keys=keys.total > 0)
        if wanted.key is not None:
            if wanted.key_begins:
                return await self._by_key_prefix(listed, wanted.key, keys)
            return await self._by_key(listed, wanted.key, keys)
        if wanted.filter is None:
            return await self._by_id(listed, wanted)
        before = _number(listed.cursor) or None
        try:
            found = await self._site.broker.lists.find_messages(
                self._queue, wanted.filter, before_sequence=before, limit=limits.LIST_PAGE_DEFAULT
            )
        except CallerError as error:
            return RowsPage([], 0, 0, None, words=wanted.words, error=error.message)
        shown, searched = listed.shown + len(found.rows), listed.searched + found.searched
        following = None
        if found.next_before is not None:
            following = listed.query(cursor=found.next_before, shown=shown, searched=searched)
        return RowsPage(
            found.rows,
            shown,
            shown,
            following,
            goes_on=len(found.rows) == limits.LIST_PAGE_DEFAULT,
            words=wanted.words,
            is_attribute=bool(wanted.filter.attributes),
            searched=searched,
            of=max(searched, found.total),
            oldest_at=found.oldest_at,
            text=wanted.text,
        )

    async def _by_key(self, listed: ListedMessages, key: str, keys: KeyCount) -> RowsPage:
        """The messages with this key, one of a kind."""
        rows = []
        try:
            for kind in [*keys.kinds][: limits.KEY_KINDS_MAX]:
                found = await self._site.broker.keyed_message(self._queue, key, kind)
                if found is not None:
                    rows += _rows_in(listed, [found.message])
        except CallerError as error:
            return RowsPage([], 0, 0, None, words="Key", error=error.message)
        return RowsPage(rows, len(rows), len(rows), None, words="Key", of=keys.total, key=key)

    async def _by_key_prefix(self, listed: ListedMessages, prefix: str, keys: KeyCount) -> RowsPage:
        """The messages whose key begins so, by the index: pages of all of them, of which the tab has some."""
        try:
            found = await self._site.broker.keyed_messages(
                self._queue, prefix=prefix, after=listed.cursor or None, limit=limits.KEYS_PAGE_MAX
            )
        except CallerError as error:
            return RowsPage([], 0, 0, None, words="Key", error=error.message)
        rows = _rows_in(listed, found.messages)
        shown = listed.shown + len(rows)
        following = None if found.next is None else listed.query(cursor=found.next, shown=shown)
        goes_on = len(rows) == len(found.messages)
        total = max(shown, keys.total)
        return RowsPage(rows, shown, total, following, goes_on=goes_on, words="Key", of=total, key=prefix)

    async def _by_id(self, listed: ListedMessages, wanted: MessageQuery) -> RowsPage:
        rows = []
        try:
            message = await self._site.broker.message(self._queue, wanted.id or "")
            rows.append(MessageRow.of(message, message.content[: limits.PREVIEW_LENGTH_MAX]))
        except MessageNotFound:
            pass
        total = self._site.broker.known.counts_of(self._queue).total
        return RowsPage(rows, len(rows), len(rows), None, words=wanted.words, searched=total, of=total)


def _rows_in(listed: ListedMessages, messages: Sequence[MessageInfo]) -> list[MessageRow]:
    """The rows of the messages that the tab shows."""
    return [
        MessageRow.of(message, message.content[: limits.PREVIEW_LENGTH_MAX])
        for message in messages
        if listed.state in ("all", message.status)
    ]


def message_list_routes(site: Site) -> Routes:
    routes = Routes("message_list", site)

    @routes.get("/queue/<queue>/rows", Scope.BROWSE)
    async def rows(queue: str) -> Response:
        """The next page of the list."""
        viewer = site.viewer
        listed = read_listed(request.args)
        page = await MessagePages(site, viewer, queue).page(listed)
        return site.part(
            "queue/rows.html",
            queue=queue,
            listed=listed,
            rows=page,
            rules=site.broker.known.rules(queue),
            mode_words=MODE_WORDS,
            is_part=True,
        )

    @routes.get("/queue/<queue>/present", Scope.BROWSE)
    async def present(queue: str) -> Response:
        """Which of these messages (`seq`, with commas between) the queue still has."""
        asked = request.args.get("seq", "").split(",")[: limits.PRESENT_MAX]
        found = await site.broker.lists.present(queue, [_number(text) for text in asked])
        return Response(",".join(map(str, sorted(found))), content_type="text/plain; charset=utf-8")

    return routes
