"""Forms as browsers send them (application/x-www-form-urlencoded), read in time that grows with their length alone."""

from urllib.parse import parse_qsl

import trio
from quart_trio.wrappers import TrioRequest
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge

from forq_trio.model import limits

_FORM = "application/x-www-form-urlencoded"


def read_form(body: bytes) -> MultiDict[str, str]:
    """The fields of a form. Bytes that are not UTF-8 are replaced. Raises RequestEntityTooLarge for too many fields."""
    text = body.decode(errors="replace")
    try:
        fields = parse_qsl(text, keep_blank_values=True, max_num_fields=limits.UI_FORM_FIELDS_MAX)
    except ValueError:
        raise RequestEntityTooLarge from None
    return MultiDict(fields)


class FormRequest(TrioRequest):
    """A request whose form `read_form` reads, in a thread if it is long. No other kind of form is read."""

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
