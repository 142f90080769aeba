"""Forms as browsers send them (application/x-www-form-urlencoded), read in time that grows with their length alone."""

import re

import trio
from quart_trio.wrappers import TrioRequest
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge

from forq_trio.model import limits

_ESCAPES = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_FORM = "application/x-www-form-urlencoded"


def read_form(body: bytes) -> MultiDict[str, str]:
    """The fields of a form. Bytes that are no UTF-8 are replaced. Raises RequestEntityTooLarge for too many fields."""
    if body.count(b"&") >= limits.UI_FORM_FIELDS_MAX:
        raise RequestEntityTooLarge
    pairs = (pair.partition(b"=") for pair in body.split(b"&") if pair)
    return MultiDict([(_decoded(name), _decoded(value)) for name, _, value in pairs])


def _decoded(text: bytes) -> str:
    """A name or value. A run of escapes is decoded at once: text that is not English is one long run."""
    plain = text.replace(b"+", b" ")
    if b"%" in plain:
        plain = _ESCAPES.sub(lambda run: bytes.fromhex(run[0].replace(b"%", b"").decode()), plain)
    return plain.decode("utf-8", "replace")


class FormRequest(TrioRequest):
    """A request whose form is read by `read_form`, in a thread where it is long. No other kind of form is read."""

    async def _load_form_data(self) -> None:
        async with self._parsing_lock:
            if self._form is not None:
                return
            body = await self.get_data(parse_form_data=False)
            assert isinstance(body, bytes)
            if self.mimetype != _FORM:
                body = b""
            if len(body) > limits.UI_FORM_INLINE_BYTES_MAX:
                self._form = await trio.to_thread.run_sync(read_form, body)
            else:
                self._form = read_form(body)
            self._files = MultiDict()
