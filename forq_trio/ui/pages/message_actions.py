"""The actions on one message: redrive it, edit and redrive it, send an edited copy, delete or cancel it."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from quart import Response, request

from forq_trio.drawing.format import sentence
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_attributes, check_content, check_producible
from forq_trio.model.errors import CallerError, Forbidden, InvalidAttributes, MessageNotFound, OutOfRange
from forq_trio.model.messages.attributes import described, replaced
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import MessageInfo, Produced, check_queue_name
from forq_trio.ui import attributes as attribute_texts
from forq_trio.ui.routes import Routes
from forq_trio.ui.site import GoneMessage, Site
from forq_trio.ui.viewer import Viewer

HomeOf = Callable[[Site, MessageInfo], str | None]


class Edit(Struct):
    """A form of an edited copy."""

    target: str
    content: str | None  # this and the next: None for that of the original
    attributes: dict[str, str] | None


def can_edit(content: str) -> bool:
    """False for content that a text field would change: it cannot hold NUL, and makes one kind of all line ends."""
    if "\0" in content:
        return False
    lone_returns = content.replace("\r\n", "")
    return "\r" not in lone_returns and ("\r" not in content or "\n" not in lone_returns)


def edited(original: str, text: str) -> str | None:
    """The typed text with the line ends of the original; None if it equals the original."""
    typed = text.replace("\r\n", "\n")
    if "\r\n" in original:
        typed = typed.replace("\n", "\r\n")
    return None if typed == original else typed


def editable_attributes(message: MessageInfo) -> dict[str, str]:
    """The attributes that its sender gave, as texts."""
    return {each.name: each.text for each in described(message.attributes).attributes}


def read_edit(form: Mapping[str, str], original: MessageInfo) -> tuple[Edit, dict[str, str]]:
    """The form, and its mistakes by field."""
    errors: dict[str, str] = {}
    edit = Edit(form.get("target", "").strip(), None, None)
    try:
        check_queue_name(edit.target)
    except CallerError as error:
        errors["target"] = error.message
    if "content" in form and can_edit(original.content):
        edit.content = edited(original.content, form["content"])
    if "attributes" in form:
        try:
            read = attribute_texts.from_text(form["attributes"].replace("\r\n", "\n"))
            edit.attributes = None if read == editable_attributes(original) else read
        except InvalidAttributes as error:
            errors["attributes"] = error.message
    return edit, errors


def require_target(viewer: Viewer, target: str, home: str | None) -> None:
    """Raise Forbidden unless the viewer may send an edited dead letter to `target`, by the API's rule."""
    if target == home and viewer.may(Scope.PRODUCE, target):
        return
    viewer.require(Scope.REDRIVE, target)


def copy_of(message: MessageInfo, edit: Edit) -> NewMessage:
    """A message to send that is like this one, as edited, and due at once.

    Raises CallerError for an edit that the API would refuse. What is not edited was accepted before, perhaps in a
    dialect with wider bounds.
    """
    attributes = message.attributes
    if edit.content is not None:
        check_content(edit.content)
    if edit.attributes is not None:
        check_attributes(edit.attributes)
        attributes = replaced(attributes, edit.attributes)
    return NewMessage(
        message.content if edit.content is None else edit.content,
        priority=message.priority,
        ttl_ms=message.ttl_ms,
        attributes=attributes or None,
        group=message.group,
        max_attempts=message.max_attempts,
        dead_letter_queue=message.dead_letter_queue,
    )


class _Actions:
    """The handlers. home_of: the queue that a copy of a message is for."""

    def __init__(self, site: Site, home_of: HomeOf) -> None:
        self._site = site
        self._home_of = home_of

    async def form(self, queue: str, message_id: str, *, moves: bool) -> Response:
        """The dialog. moves: the original is removed."""
        message = await self._site.broker.message(queue, message_id)
        return self._dialog(message, moves, {}, {})

    async def submit(self, queue: str, message_id: str, *, moves: bool) -> Response:
        form = (await request.form).to_dict()
        message = await self._site.broker.message(queue, message_id)
        edit, errors = read_edit(form, message)
        status = 400
        if not errors:
            try:
                produced = await (self._move(message, edit) if moves else self._copy(message, edit))
            except MessageNotFound:
                raise
            except Forbidden as error:
                status, errors["target"] = 403, error.message
            except CallerError as error:
                errors[_field(error)] = error.message
            else:
                words = f"{'Edited and redriven' if moves else 'Edited copy sent'} to {edit.target}"
                gone = GoneMessage(message.sequence, "redriven") if moves else None
                return self._done_there(
                    words, edit.target, produced.id, go=moves and _on_page(form), gone=gone
                )
        return self._dialog(message, moves, form, errors, status)

    async def _move(self, message: MessageInfo, edit: Edit) -> Produced:
        require_target(self._site.viewer, edit.target, self._home_of(self._site, message))
        return await self._site.broker.resubmit(
            message.queue,
            message.id,
            content=edit.content,
            attributes=edit.attributes,
            target=edit.target,
            remove=True,
        )

    async def _copy(self, message: MessageInfo, edit: Edit) -> Produced:
        viewer = self._site.viewer
        viewer.require(Scope.PRODUCE, edit.target)
        check_producible(edit.target)
        copy = copy_of(message, edit)
        if copy.dead_letter_queue:
            viewer.require(Scope.PRODUCE, copy.dead_letter_queue)
        return await self._site.broker.store_message(edit.target, copy)

    def _dialog(
        self,
        message: MessageInfo,
        moves: bool,
        form: Mapping[str, str],
        errors: Mapping[str, str],
        status: int = 200,
    ) -> Response:
        site = self._site
        values: dict[str, Any] = {
            "target": self._home_of(site, message) or "",
            "content": message.content,
            "attributes": attribute_texts.to_text(editable_attributes(message)),
        }
        return site.part(
            "message/edit.html",
            status,
            message=message,
            moves=moves,
            values=values | dict(form),
            errors=errors,
            on_page=(form or request.args).get("in") == "page",
            can_edit=can_edit(message.content),
            has_types=any(each.type for each in described(message.attributes).attributes),
            action=f"/queue/{message.queue}/message/{message.id}/{'edit' if moves else 'copy'}",
        )

    def _done_there(
        self, words: str, target: str, message_id: str, *, go: bool, gone: GoneMessage | None
    ) -> Response:
        """The answer that it is done, with a link to the message in `target`; go: the browser goes there at once."""
        site = self._site
        href = site.url(f"/queue/{target}/message/{message_id}") if site.viewer.may_see(target) else None
        if go and href:
            return site.done(words, go=href)
        return site.done(words, link="Show it" if href else None, href=href, gone=gone)

    async def redrive(self, queue: str, message_id: str) -> Response:
        site = self._site
        message = await site.broker.message(queue, message_id)
        (result,) = await site.broker.redrive(queue, [message_id])
        if not result.ok:
            raise MessageNotFound(result.message or "")
        home = self._home_of(site, message) or ""
        gone = GoneMessage(message.sequence, "redriven")
        go = _on_page(await request.form)
        return self._done_there(f"Redriven to {home}", home, message.id, go=go, gone=gone)

    async def delete(self, queue: str, message_id: str) -> Response:
        site = self._site
        message = await site.broker.message(queue, message_id)
        (result,) = await site.broker.delete_dead_letters(queue, [message_id])
        if not result.ok:
            raise MessageNotFound(result.message or "")
        go = site.url(f"/dead/{queue}") if _on_page(await request.form) else None
        gone = GoneMessage(message.sequence, "deleted")
        return site.done(f"Deleted message {message.sequence:,}", go=go, gone=gone)

    async def cancel(
        self, queue: str, message_id: str, *, running: bool = False, reason: str = ""
    ) -> Response:
        site = self._site
        message = await site.broker.message(queue, message_id)
        await site.broker.cancel(queue, message_id, running=running, reason=reason)
        go = site.url(f"/queue/{queue}") if _on_page(await request.form) else None
        gone = GoneMessage(message.sequence, "cancelled")
        return site.done(f"Cancelled message {message.sequence:,}", go=go, gone=gone)

    async def ask_cancel_running(self, queue: str, message_id: str) -> Response:
        return await self._cancel_dialog(queue, message_id, {"in": request.args.get("in", "")})

    async def cancel_running(self, queue: str, message_id: str) -> Response:
        form = (await request.form).to_dict()
        try:
            return await self.cancel(queue, message_id, running=True, reason=form.get("reason", "").strip())
        except OutOfRange as error:
            return await self._cancel_dialog(
                queue, message_id, form, {"reason": sentence(error.message)}, 400
            )

    async def _cancel_dialog(
        self,
        queue: str,
        message_id: str,
        form: Mapping[str, str],
        errors: Mapping[str, str] = MappingProxyType({}),
        status: int = 200,
    ) -> Response:
        context: dict[str, Any] = {
            "message": await self._site.broker.message(queue, message_id),
            "on_page": _on_page(form),
            "texts": {"reason": form.get("reason", "")},
            "errors": errors,
        }
        title = "Cancel a message in flight"
        return await self._site.dialog("message/cancel_running.html", title, status, **context)


def _on_page(form: Mapping[str, str]) -> bool:
    """Whether the form was sent from the message's own page, which has nothing left to show, and not from a list."""
    return form.get("in") == "page"


def _field(error: CallerError) -> str:
    """The field of the form that an error is about; "" for all of it."""
    name = (getattr(error, "field", None) or "").partition(".")[0]
    return {"queue": "target"}.get(name, name) if name in ("content", "attributes", "target", "queue") else ""


def add_actions(routes: Routes, site: Site, base: str, home_of: HomeOf) -> None:
    """Add the routes below a message's path."""
    actions = _Actions(site, home_of)
    for path, scope, moves in (("edit", Scope.REDRIVE, True), ("copy", Scope.BROWSE, False)):
        routes.get(f"{base}/{path}", scope)(partial(actions.form, moves=moves))
        routes.post(f"{base}/{path}", scope)(partial(actions.submit, moves=moves))
    routes.post(f"{base}/redrive", Scope.REDRIVE)(actions.redrive)
    routes.post(f"{base}/delete", Scope.REDRIVE)(actions.delete)
    routes.post(f"{base}/cancel", Scope.CANCEL)(actions.cancel)
    routes.get(f"{base}/cancel-running", Scope.CANCEL)(actions.ask_cancel_running)
    routes.post(f"{base}/cancel-running", Scope.CANCEL)(actions.cancel_running)
