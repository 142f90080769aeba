"""The asynchronous client, for trio and for asyncio.

`sync.py` is generated from this file by script/blocking_client.py: every method exists once to write and twice to
call, plain and typed, which neither a base class nor a decorator gives to type checkers, editors and readers alike.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack, cast

import anyio
import httpx

from forq_trio.client import protocol
from forq_trio.client.address import DEFAULT_URL
from forq_trio.client.protocol import AnswerT, Results
from forq_trio.client.retry import Retries
from forq_trio.client.types import (
    ConsumerInfo,
    ConsumerLease,
    CreatedToken,
    DeadLetterFilter,
    DeadLetterPage,
    Delivery,
    EventPage,
    EventRange,
    ExportPage,
    ExportPartitions,
    FinishedMessage,
    FinishedPage,
    HistoryFilter,
    HistoryPage,
    HistoryRange,
    LeasePage,
    MessageEvent,
    MessageInfo,
    MessageOptions,
    MoveResult,
    NewMessage,
    Produced,
    Publication,
    PublishedVersion,
    QueueConfiguration,
    QueueHealth,
    QueueInfo,
    ReceiptResult,
    RedriveInfo,
    Scope,
    SettingsOptions,
    Stage,
    Staged,
    TokenInfo,
)
from forq_trio.client.unreachable import unreachable
from forq_trio.model.errors import ForqError
from forq_trio.wire.consumers import AcknowledgeLease, ConsumerList, LeaseRequest, OpenConsumer
from forq_trio.wire.dead_letters import (
    DeleteMessages,
    RedriveList,
    RedriveMessages,
    Resubmission,
    StartRedrive,
)
from forq_trio.wire.limits import (
    CONSUMER_LEASE_MESSAGES_DEFAULT,
    EVENTS_PAGE_DEFAULT,
    EXPORT_PAGE_MAX,
    EXPORT_PARTITIONS_DEFAULT,
    WAIT_MS_MAX,
)
from forq_trio.wire.messages import LeasedMessages, MessageList, ReceiveRequest, SendResults
from forq_trio.wire.publishing import NamedStage, PublishRequest
from forq_trio.wire.queues import Purged, QueueList, SettingsChange
from forq_trio.wire.receipts import AckRequest, ExtendRequest, NackRequest, ReleaseRequest
from forq_trio.wire.tokens import NewToken, TokenList


class AsyncForqClient:
    """A server at `url`, reached with `secret` (its FORQ_AUTH_SECRET, or a token). Use `async with`, or `aclose` it.

    retry_seconds: how long a call may go on trying while no connection can be made or the server says that it is
    overloaded; nothing else is ever repeated. transport: what carries the requests, for tests and special networks.

    Every method raises what the broker's method of the same name raises; and WrongKey, TooManyWrongKeys or Forbidden
    for a secret that does not allow it, ForqUnreachable when no answer comes, ForqProtocolError when the answer is not
    one of Forq's.

    Cancelling a call closes its connection; what it asked for may have happened or not. The server notices at
    once and releases the messages of a cancelled `receive`.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        secret: str = "",
        *,
        retry_seconds: float = 10.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url
        self._retry_seconds = retry_seconds
        self._http = httpx.AsyncClient(transport=transport, **protocol.http_settings(url, secret))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once durable. The options are the members of `NewMessage`."""
        # A batch of one: unlike the plain send, it is answered with the message's id.
        (result,) = await self.produce_many(queue, [NewMessage(content, **options)])
        if isinstance(result, ForqError):
            raise result
        return result

    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        """Store the valid ones of up to 1,000 messages (4 MiB) in one commit; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise.
        `forq_trio.client.batches` cuts more than that into such requests.
        """
        path = f"{protocol.queue_path(queue)}/messages/batch"
        answer = await self._ask("POST", path, SendResults, {"messages": messages})
        return protocol.read_results(answer.results, len(messages))

    async def receive(
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
        lease ends before it is settled is delivered again.
        """
        wanted = ReceiveRequest(max_messages, wait_ms, lease_ms, "shuffle" if shuffle else "fifo")
        path = f"{protocol.queue_path(queue)}/messages/receive"
        answer = await self._ask("POST", path, LeasedMessages, wanted, wait_ms / 1000)
        return answer.messages

    async def ack(self, queue: str, receipts: Sequence[str]) -> list[ReceiptResult]:
        """Remove up to 1,000 received messages; a receipt that is no longer current is refused alone."""
        return await self._settle("ack", queue, AckRequest(list(receipts)))

    async def nack(
        self, queue: str, receipts: Sequence[str], *, delay_ms: int | None = None, reason: str | None = None
    ) -> list[ReceiptResult]:
        """Give messages back after a failed attempt, for `delay_ms` (None: the back-off by attempt)."""
        return await self._settle("nack", queue, NackRequest(list(receipts), delay_ms, reason))

    async def extend(
        self, queue: str, receipts: Sequence[str], lease_ms: int | None = None
    ) -> list[ReceiptResult]:
        """Let leases end `lease_ms` (None: the queue's lease) from now; each result has the new end."""
        return await self._settle("extend", queue, ExtendRequest(list(receipts), lease_ms))

    async def release(self, queue: str, receipts: Sequence[str], *, delay_ms: int = 0) -> list[ReceiptResult]:
        """Give messages back unprocessed, the attempt uncounted, after `delay_ms`."""
        return await self._settle("release", queue, ReleaseRequest(list(receipts), delay_ms))

    async def queues(self) -> list[QueueInfo]:
        """All queues by name; one request for a thousand of them."""
        page = await self._ask("GET", protocol.queues_path(""), QueueList)
        found = page.queues
        while page.next is not None:
            page = await self._ask("GET", protocol.queues_path(page.next), QueueList)
            found += page.queues
        return found

    async def queue_stats(self, queue: str) -> QueueInfo:
        """One queue; zeros for a queue that is not known."""
        return await self._ask("GET", protocol.queue_path(queue), QueueInfo)

    async def queue_health(self, queue: str) -> QueueHealth:
        """How well one queue is, in words, and what to do about it. Only a server watches its queues."""
        return await self._ask("GET", f"{protocol.queue_path(queue)}/health", QueueHealth)

    async def message(self, queue: str, message_id: str) -> MessageInfo:
        """One message, read without changing it."""
        return await self._ask("GET", protocol.message_path(queue, message_id), MessageInfo)

    async def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        """The next ready messages (1-100) in the order they will be received, or random ones; nothing is claimed."""
        order = "&order=shuffle" if shuffle else ""
        path = f"{protocol.queue_path(queue)}/peek?limit={limit}{order}"
        answer = await self._ask("GET", path, MessageList)
        return answer.messages

    async def settings(self, queue: str) -> QueueConfiguration:
        """The settings of a queue, as they were set and with the defaults filled in."""
        path = f"{protocol.queue_path(queue)}/settings"
        return protocol.read_configuration(await self._request("GET", path))

    async def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration:
        """Change settings: those not named are not changed, None resets to the default. Returns the settings then.

        Applies at once to all messages of the queue, but order, delay and time to live only to those sent from now
        on. Raises TypeError for a name that is no setting.
        """
        change = SettingsChange(**cast("Any", changes))
        path = f"{protocol.queue_path(queue)}/settings"
        return protocol.read_configuration(await self._request("PUT", path, change))

    async def reset_settings(self, queue: str) -> None:
        """Reset all settings to the defaults; a paused queue stays paused."""
        await self._request("DELETE", f"{protocol.queue_path(queue)}/settings")

    async def pause(self, queue: str) -> None:
        """Deliver no messages of the queue until `resume`; sends go on."""
        await self._request("POST", f"{protocol.queue_path(queue)}/pause")

    async def resume(self, queue: str) -> None:
        """End a pause."""
        await self._request("POST", f"{protocol.queue_path(queue)}/resume")

    async def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, whatever their status; returns how many."""
        path = f"{protocol.queue_path(queue)}/purge"
        answer = await self._ask("POST", path, Purged, wait_seconds=protocol.PURGE_SECONDS)
        return answer.purged

    async def delete_queue(self, queue: str) -> None:
        """Forget an empty queue and its settings. Raises QueueNotEmpty while it has messages."""
        await self._request("DELETE", protocol.queue_path(queue))

    async def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = 50,
    ) -> DeadLetterPage:
        """A page (1-100) of dead letters that match, newest first; reads 10,000 messages at most.

        All methods for dead letters need a queue that takes them; for others they raise DeadLettersOnly.
        """
        query = protocol.search_query(wanted or DeadLetterFilter(), before_sequence, limit)
        return await self._ask("GET", f"{protocol.dead_letters_path(queue)}?{query}", DeadLetterPage)

    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        """One dead letter, with where it came from and how it failed."""
        return await self._ask("GET", protocol.dead_letter_path(queue, message_id), MessageInfo)

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        """Move up to 1,000 dead letters to `target` (None: back to where each came from), by 50 in a transaction."""
        wanted = RedriveMessages(list(message_ids), target)
        path = f"{protocol.dead_letters_path(queue)}/redrive"
        answer = await self._ask("POST", path, Results[MoveResult], wanted)
        return answer.results

    async def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        """Delete up to 1,000 dead letters for good, by 50 in a transaction."""
        path = f"{protocol.dead_letters_path(queue)}/delete"
        wanted = DeleteMessages(list(message_ids))
        answer = await self._ask("POST", path, Results[MoveResult], wanted)
        return answer.results

    async def resubmit(
        self,
        queue: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, str] | None = None,
        target: str | None = None,
        remove: bool = False,
    ) -> Produced:
        """Send a copy with other content or attributes (None: the same). remove: delete the original, too."""
        edited = None if attributes is None else dict(attributes)
        path = f"{protocol.dead_letter_path(queue, message_id)}/resubmit"
        return await self._ask("POST", path, Produced, Resubmission(content, edited, target, remove))

    async def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> RedriveInfo:
        """Start a task that moves all dead letters that match and are there now; returns once it is stored."""
        path = f"{protocol.dead_letters_path(queue)}/redrives"
        start = StartRedrive(wanted or DeadLetterFilter(), target, rate_per_second, dry_run)
        return await self._ask("POST", path, RedriveInfo, start)

    async def start_deletion(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> RedriveInfo:
        """Start a task that deletes all dead letters that match and are there now; else it is like a redrive."""
        path = f"{protocol.dead_letters_path(queue)}/redrives"
        start = StartRedrive(wanted or DeadLetterFilter(), None, rate_per_second, dry_run, "delete")
        return await self._ask("POST", path, RedriveInfo, start)

    async def redrives(self, queue: str) -> list[RedriveInfo]:
        """The redrives that run or are paused and the latest that ended, the latest first."""
        path = f"{protocol.dead_letters_path(queue)}/redrives"
        answer = await self._ask("GET", path, RedriveList)
        return answer.redrives

    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        """A redrive, with its progress."""
        return await self._ask("GET", protocol.redrive_path(queue, redrive_id), RedriveInfo)

    async def pause_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Stop a redrive until it is resumed, also over a restart of the server."""
        path = f"{protocol.redrive_path(queue, redrive_id)}/pause"
        return await self._ask("POST", path, RedriveInfo, wait_seconds=protocol.CANCEL_SECONDS)

    async def resume_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Let a paused or failed redrive go on from where it was."""
        return await self._ask("POST", f"{protocol.redrive_path(queue, redrive_id)}/resume", RedriveInfo)

    async def cancel_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Stop a redrive for good; returns once it has ended. What it moved stays moved."""
        path = f"{protocol.redrive_path(queue, redrive_id)}/cancel"
        return await self._ask("POST", path, RedriveInfo, wait_seconds=protocol.CANCEL_SECONDS)

    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
        """Forget a redrive that has ended."""
        await self._request("DELETE", protocol.redrive_path(queue, redrive_id))

    async def stage(self, queue: str, stage: str, page: int, messages: Sequence[NewMessage]) -> Staged:
        """Store a page of up to 10,000 messages (4 MiB) beside the queue, until `publish`; returns once it is durable.

        stage: a unique name of the caller's choice. page: its number, from 0; one that is there already is ignored, and
        answered like the first time, so a call can be repeated. All or nothing: the error for a message that cannot be
        stored names its line in `field`. A stage ends by itself a day after its last page.
        """
        path = f"{protocol.stage_path(queue, stage)}/pages/{page}"
        return await self._ask("POST", path, Staged, protocol.lines_of(messages))

    async def discard_stage(self, queue: str, stage: str) -> None:
        """End a stage that is not to be published, if it is there."""
        await self._request("DELETE", protocol.stage_path(queue, stage))

    async def publish(self, app: str, version: int, stages: Sequence[Stage]) -> Publication:
        """Publish up to 1,000 stages in this order, in one transaction; returns when all messages are in their queues.

        Nothing is done if the app published this version, or a later one, before: so it can be repeated until it is
        answered. Raises StageMissing for a stage that has not exactly these pages.
        """
        named = [NamedStage(each.queue, each.stage, each.pages) for each in stages]
        wanted = PublishRequest(app, version, named)
        return await self._ask(
            "POST", protocol.PUBLICATIONS, Publication, wanted, wait_seconds=protocol.PUBLISH_SECONDS
        )

    async def publication(self, app: str) -> PublishedVersion:
        """The last version that an app published. Raises PublicationNotFound."""
        return await self._ask("GET", protocol.publication_path(app), PublishedVersion)

    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = EXPORT_PAGE_MAX
    ) -> ExportPage:
        """Messages as they are, by sequence: those above `after`, up to `until` (None: all); nothing is changed.

        At most `limit` (1-10,000) and 4 MiB of content; go on with `next` as `after`.
        """
        last = "" if until is None else f"&until={until}"
        path = f"{protocol.queue_path(queue)}/export?after={after}{last}&limit={limit}"
        return protocol.read_export(await self._request("GET", path))

    async def export_partitions(self, queue: str, count: int = EXPORT_PARTITIONS_DEFAULT) -> ExportPartitions:
        """Cut what is stored now into at most `count` (1-1,000) ranges for `export`, to be read side by side."""
        path = f"{protocol.queue_path(queue)}/export/partitions?count={count}"
        return await self._ask("GET", path, ExportPartitions)

    async def history(
        self, after: int = 0, *, until: int | None = None, limit: int = 1_000, queue: str | None = None
    ) -> HistoryPage:
        """Finished messages with history ids above `after` (and up to `until`), oldest first, 1-10,000 a page.

        A page has at most 4 MiB. queue: None for all; a token that does not cover all has to name one. The page after
        it begins at its `next`.
        """
        path = protocol.history_path(after, until, limit, queue)
        return protocol.read_history_page(await self._request("GET", path))

    async def history_range(self) -> HistoryRange:
        """Which history ids are kept, and whether messages that end now are."""
        return await self._ask("GET", f"{protocol.HISTORY}/range", HistoryRange)

    async def search_history(
        self,
        queue: str,
        wanted: HistoryFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 50,
    ) -> FinishedPage:
        """A page (1-100) of finished messages of a queue that match, newest first; reads 10,000 messages at most."""
        query = protocol.search_query(wanted or HistoryFilter(), before, limit)
        return await self._ask("GET", f"{protocol.queue_path(queue)}/history?{query}", FinishedPage)

    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        """One finished message of a queue, with its content and how it ended."""
        return await self._ask("GET", protocol.finished_path(queue, message_id), FinishedMessage)

    async def purge_history(self, queue: str) -> int:
        """Remove all messages of a queue from the history that ended before this call; returns how many."""
        path = f"{protocol.queue_path(queue)}/history"
        answer = await self._ask("DELETE", path, Purged, wait_seconds=protocol.PURGE_SECONDS)
        return answer.purged

    async def open_consumer(self, queue: str, name: str, *, idle_seconds: int | None = None) -> ConsumerInfo:
        """Open a consumer, and make it if there is none. From now on its older generations are refused.

        idle_seconds: its open lease is given back when it is not used for so long; None for what was set, or a day.
        """
        return await self._ask(
            "PUT", protocol.consumer_path(queue, name), ConsumerInfo, OpenConsumer(idle_seconds)
        )

    async def lease(
        self,
        queue: str,
        name: str,
        generation: int,
        number: int,
        *,
        acknowledge: int | None = None,
        max_messages: int = CONSUMER_LEASE_MESSAGES_DEFAULT,
        max_bytes: int | None = None,
    ) -> ConsumerLease:
        """Acknowledge the leases up to `acknowledge`, make lease `number`, and return it once it is complete.

        Repeatable: the same number has the same messages for ever. Without any that are ready the result has no
        messages, and the lease is not made. A long one takes several requests.
        """
        path = f"{protocol.consumer_path(queue, name)}/lease"
        wanted = LeaseRequest(generation, number, acknowledge, max_messages, max_bytes)
        while True:
            lease = await self._ask("POST", path, ConsumerLease, wanted)
            if lease.complete:
                return lease

    async def lease_page(
        self, queue: str, name: str, number: int, page: int = 0, pages: int = 1
    ) -> LeasePage:
        """The messages of `pages` (1-1,000) pages of a lease, fewer if they have more than 4 MiB; repeatable."""
        path = protocol.lease_page_path(queue, name, number, page, pages)
        return protocol.read_lease_page(await self._request("GET", path))

    async def acknowledge(self, queue: str, name: str, generation: int, number: int) -> ConsumerInfo:
        """Remove the messages of the open lease, which is `number`; one that was acknowledged before stays so."""
        path = f"{protocol.consumer_path(queue, name)}/acknowledge"
        wanted = AcknowledgeLease(generation, number)
        return await self._ask("POST", path, ConsumerInfo, wanted, protocol.PURGE_SECONDS)

    async def release_consumer(self, queue: str, name: str) -> ConsumerInfo:
        """Give the messages of the open lease back, the attempt uncounted: it can no longer be acknowledged."""
        path = f"{protocol.consumer_path(queue, name)}/release"
        return await self._ask("POST", path, ConsumerInfo, wait_seconds=protocol.PURGE_SECONDS)

    async def delete_consumer(self, queue: str, name: str) -> None:
        """Give the messages of the open lease back, and forget the consumer."""
        path = protocol.consumer_path(queue, name)
        await self._request("DELETE", path, wait_seconds=protocol.PURGE_SECONDS)

    async def consumers(self, queue: str | None = None) -> list[ConsumerInfo]:
        """The consumers of a queue (None: of all) by queue and name."""
        page = await self._ask("GET", protocol.consumers_path(queue), ConsumerList)
        found = page.consumers
        while page.next is not None:
            page = await self._ask("GET", protocol.consumers_path(queue, page.next), ConsumerList)
            found += page.consumers
        return found

    async def consumer(self, queue: str, name: str) -> ConsumerInfo:
        """One consumer."""
        return await self._ask("GET", protocol.consumer_path(queue, name), ConsumerInfo)

    async def events(
        self,
        after: int = 0,
        *,
        until: int | None = None,
        limit: int = EVENTS_PAGE_DEFAULT,
        queue: str | None = None,
        wait_ms: int = 0,
    ) -> EventPage:
        """Up to `limit` (1-10,000) lifecycle events behind `after`, oldest first; waits up to `wait_ms` for one."""
        path = protocol.events_path(after, until, limit, queue, wait_ms)
        return protocol.read_events(await self._request("GET", path, wait_seconds=wait_ms / 1000))

    async def event_range(self) -> EventRange:
        """Whether lifecycle events are kept, and which."""
        return await self._ask("GET", protocol.EVENT_RANGE, EventRange)

    async def message_events(self, queue: str, message_id: str) -> list[MessageEvent]:
        """The latest 1,000 events of a message, oldest first, also of one that has gone."""
        return await self._ask("GET", protocol.message_events_path(queue, message_id), list[MessageEvent])

    async def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        """Create a token for the queues that the glob matches, until `expires_at` (epoch ms; None: for ever).

        Only this result has its text. For the holder of the secret, or of a token with the scope admin for all queues;
        so are `tokens` and `revoke_token`.
        """
        wanted = NewToken(name, list(scopes), queues, expires_at)
        return await self._ask("POST", protocol.TOKENS, CreatedToken, wanted)

    async def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also those that expired."""
        answer = await self._ask("GET", protocol.TOKENS, TokenList)
        return answer.tokens

    async def revoke_token(self, name: str) -> None:
        """Revoke a token, at once and for good."""
        await self._request("DELETE", protocol.token_path(name))

    async def healthcheck(self) -> None:
        """Return if the server and its database work."""
        await self._request("GET", "/healthcheck")

    async def _settle(self, verb: str, queue: str, wanted: object) -> list[ReceiptResult]:
        path = f"{protocol.queue_path(queue)}/messages/{verb}"
        answer = await self._ask("POST", path, Results[ReceiptResult], wanted)
        return answer.results

    async def _ask(
        self,
        method: str,
        path: str,
        answer: type[AnswerT],
        body: object | None = None,
        wait_seconds: float = 0.0,
    ) -> AnswerT:
        """Make a request and read its answer. wait_seconds: how long the server may wait before it answers."""
        return protocol.read_answer(await self._request(method, path, body, wait_seconds), answer)

    async def _request(
        self, method: str, path: str, body: object | None = None, wait_seconds: float = 0.0
    ) -> httpx.Response:
        """Make a request, again while it certainly did nothing and there is time. Returns a success."""
        settings = protocol.request_settings(body, wait_seconds)
        retries = Retries(self._retry_seconds)
        while True:
            try:
                response = await self._http.request(method, path, **settings)
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                delay = retries.next_pause()
                if delay is None:
                    raise unreachable(self._url, problem) from problem
            except protocol.TRANSPORT_ERRORS as problem:
                raise unreachable(self._url, problem) from problem
            except httpx.DecodingError as problem:
                raise protocol.unreadable(problem) from problem
            else:
                delay = retries.after_answer(response)
                if delay is None:
                    if not response.is_success:
                        raise protocol.refusal(response)
                    return response
            await anyio.sleep(delay)
