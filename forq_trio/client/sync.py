"""The blocking client. Safe to share between threads."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

import httpx

from forq_trio.client import calls
from forq_trio.client.calls import Call, ResultT
from forq_trio.client.retry import Retries
from forq_trio.client.settings import QueueConfiguration, SettingsChange
from forq_trio.client.sync_dead_letters import DeadLetterMethods
from forq_trio.client.sync_tokens import TokenMethods
from forq_trio.client.types import (
    DEFAULT_URL,
    WAIT_MS_MAX,
    Delivery,
    MessageInfo,
    MessageOptions,
    NewMessage,
    Produced,
    QueueInfo,
    ReceiptResult,
    Rejected,
)


class ForqClient(DeadLetterMethods, TokenMethods):
    """A server at `url`, reached with `secret` (its FORQ_AUTH_SECRET, or a token). Close it, or use it with `with`.

    retry_seconds: how long a call may go on trying while no connection can be made or the server says that
    it is overloaded; nothing else is ever repeated. transport: what carries the requests, for tests and
    special networks.

    Every method raises ForqApiError when the server refuses, ForqUnreachable when no answer comes, and
    ForqProtocolError when the answer is not one of Forq's.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        secret: str = "",
        *,
        retry_seconds: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._url = url
        self._retry_seconds = retry_seconds
        self._http = httpx.Client(transport=transport, **calls.http_settings(url, secret))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once durable. The options are the members of `NewMessage`."""
        return self._run(calls.produce(queue, NewMessage(content, **options)))

    def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | Rejected]:
        """Store up to 1,000 messages (4 MiB) in one commit, each judged alone; results in their order.

        `forq_trio.client.batches` cuts more than that into such requests.
        """
        return self._run(calls.produce_many(queue, messages))

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = WAIT_MS_MAX,
        lease_ms: int | None = None,
        shuffle: bool = False,
    ) -> list[Delivery]:
        """Lease up to `max_messages` (1-100) for `lease_ms` (None: the queue's); in order, or at random.

        Waits up to `wait_ms` (0-30,000) for the first and returns an empty list when none came. A message whose
        lease ends before it is settled comes again.
        """
        return self._run(calls.receive(queue, max_messages, wait_ms, lease_ms, shuffle))

    def ack(self, queue: str, receipts: Sequence[str]) -> list[ReceiptResult]:
        """Remove up to 1,000 received messages; a receipt that is no longer current is refused alone."""
        return self._run(calls.settle("ack", queue, receipts))

    def nack(
        self, queue: str, receipts: Sequence[str], *, delay_ms: int | None = None, reason: str | None = None
    ) -> list[ReceiptResult]:
        """Give messages back after a failed attempt, for `delay_ms` (None: the back-off by attempt)."""
        return self._run(calls.settle("nack", queue, receipts, delay_ms=delay_ms, reason=reason))

    def extend(self, queue: str, receipts: Sequence[str], lease_ms: int | None = None) -> list[ReceiptResult]:
        """Let leases end `lease_ms` (None: the queue's lease) from now; each result has the new end."""
        return self._run(calls.settle("extend", queue, receipts, lease_ms=lease_ms))

    def release(self, queue: str, receipts: Sequence[str], *, delay_ms: int = 0) -> list[ReceiptResult]:
        """Give messages back unprocessed, the attempt uncounted, after `delay_ms`."""
        return self._run(calls.settle("release", queue, receipts, delay_ms=delay_ms))

    def queues(self) -> list[QueueInfo]:
        """All queues by name."""
        return self._run(calls.queues())

    def queue_stats(self, queue: str) -> QueueInfo:
        """One queue; zeros for one that nobody ever used."""
        return self._run(calls.queue_stats(queue))

    def message(self, queue: str, message_id: str) -> MessageInfo:
        """Look at one message without touching it."""
        return self._run(calls.message(queue, message_id))

    def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        """The next ready messages (1-100) in the order they will be received, or some at random; untouched."""
        return self._run(calls.peek(queue, limit, shuffle))

    def settings(self, queue: str) -> QueueConfiguration:
        """What was set for a queue, and what holds."""
        return self._run(calls.settings(queue))

    def configure(self, queue: str, **changes: Unpack[SettingsChange]) -> QueueConfiguration:
        """Change settings: what is not named stays as it is, None goes back to the default. Returns what holds then.

        Holds at once for all messages of the queue, but order, delay and time to live only for those sent from now
        on. Raises TypeError for a name that is no setting.
        """
        return self._run(calls.configure(queue, changes))

    def reset_settings(self, queue: str) -> None:
        """Go back to the defaults; a paused queue stays paused."""
        self._run(calls.reset_settings(queue))

    def pause(self, queue: str) -> None:
        """Hand out no messages of the queue until `resume`; it goes on taking them."""
        self._run(calls.pause(queue))

    def resume(self, queue: str) -> None:
        """End a pause."""
        self._run(calls.resume(queue))

    def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, whatever their status; returns how many."""
        return self._run(calls.purge(queue))

    def delete_queue(self, queue: str) -> None:
        """Take an empty queue off the list, and its settings with it. ForqApiError 409 while it has messages."""
        self._run(calls.delete_queue(queue))

    def healthcheck(self) -> None:
        """Return if the server and its database work."""
        self._run(calls.healthcheck())

    def _run(self, call: Call[ResultT]) -> ResultT:
        retries = Retries(self._retry_seconds)
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, content=call.body, headers=call.headers, timeout=call.timeout
                )
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                delay = retries.next_pause()
                if delay is None:
                    raise calls.unreachable(self._url, problem) from problem
            except calls.TRANSPORT_ERRORS as problem:
                raise calls.unreachable(self._url, problem) from problem
            else:
                delay = retries.after_answer(response)
                if delay is None:
                    return call.result(response)
            time.sleep(delay)
