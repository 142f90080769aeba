"""Sends for a worker: writes payloads as the queue's handler reads them, and adds the program's attributes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from forq_trio.model import limits
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.worker.handlers import Handler
from forq_trio.worker.opened import Call
from forq_trio.worker.opening import NOT_OPEN, WorkerSource
from forq_trio.worker.payloads import Payload
from forq_trio.worker.send_options import MemberOptions, SendOptions, Sent, options_of_source
from forq_trio.worker.source import Source


class Sender:
    """Sends through the source of a worker. handlers: its handlers, by queue."""

    def __init__(self, source: WorkerSource, handlers: Mapping[str, Handler[Any, ..., Any]]) -> None:
        self.attributes: list[Callable[[], Mapping[str, str]]] = []  # each message gets their results
        self._source = source
        self._handlers = handlers
        self._payloads: dict[type, Payload] = {}  # of queues without a handler here

    async def send(self, queue: str, payload: Any, given: SendOptions) -> Sent:
        """See `Worker.send`."""
        source = self._source.to_send
        options = options_of_source(given)
        key = options.pop("key", None)
        return await _give(source, queue, key, self._written(queue, payload, options), options)

    def send_blocking(self, queue: str, payload: Any, given: SendOptions) -> Sent:
        """See `Worker.send_blocking`."""
        options = options_of_source(given)
        key = options.pop("key", None)
        content = self._written(queue, payload, options)
        if (opened := self._source.opened) is not None:
            sent: Sent = opened.call(partial(_give, opened.sending, queue, key, content, options))
            return sent
        source = self._source.to_send_blocking()
        if key is not None:
            return source.offer(queue, key, content, **options)
        return source.produce(queue, content, **options)

    @property
    def source(self) -> Source:
        """Where messages go. Raises RuntimeError if the worker is not open."""
        return self._source.to_send

    def message(self, queue: str, payload: Any, given: MemberOptions, attributes_max: int) -> NewMessage:
        """A message as the worker sends it, without a key, with so many attributes of the program's at most."""
        options = options_of_source(given)
        return NewMessage(self._written(queue, payload, options, attributes_max), **options)

    def from_thread(self, function: Call) -> Any:
        """The result of an async function, for a thread. Raises RuntimeError if the worker is not open."""
        if (opened := self._source.opened) is None:
            raise RuntimeError(NOT_OPEN)
        return opened.call(function)

    def _written(
        self, queue: str, payload: Any, options: dict[str, Any], attributes_max: int = limits.ATTRIBUTES_MAX
    ) -> str:
        """The content of a message; the program's attributes become options, up to so many attributes in all."""
        content = self._payload_of(queue, payload).encode(payload)
        attributes = dict(options.get("attributes") or {})
        for name, value in (pair for each in self.attributes for pair in each().items()):
            if len(attributes) < attributes_max:
                attributes.setdefault(name, value)
        if attributes:
            options["attributes"] = attributes
        return content

    def _payload_of(self, queue: str, payload: Any) -> Payload:
        handler = self._handlers.get(queue)
        if handler is not None:
            return handler.payload
        known = self._payloads.get(type(payload))
        if known is None:
            known = self._payloads[type(payload)] = Payload(type(payload))
        return known


async def _give(source: Source, queue: str, key: str | None, content: str, options: dict[str, Any]) -> Sent:
    if key is not None:
        return await source.offer(queue, key, content, **options)
    return await source.produce(queue, content, **options)
