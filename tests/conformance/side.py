"""One engine of a comparison: it is given commands with stand-ins, and tells what can be compared."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from forq_trio.model.commands import (
    AckById,
    AckRevision,
    AddToMessageBatch,
    Claim,
    Compacted,
    Delete,
    NackById,
    OfferMany,
    Produce,
    ProduceEach,
    ProduceMany,
    Redrive,
    RelayMessages,
    RescheduleKey,
    Resubmit,
    TrimEvents,
    TrimHistory,
)
from forq_trio.model.consumers.types import PipelineConsumer
from forq_trio.model.dead_letters.searches import ListedState, MessageFilter
from forq_trio.model.keys.types import Offered, Offering
from forq_trio.model.message_batches.types import MessageBatch, MessageBatchPage
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced, Receipt
from forq_trio.model.schedules.types import SavedRun, Schedule
from forq_trio.storage.engine import Batch, BatchResult, Deferred, Engine, Receiver
from support.batches import read_events, served_by_queue, waiting
from support.by_id import BY_ID

from .random_commands import QUEUES

SentT = TypeVar("SentT", NewMessage, Offering)
LINE = msgspec.json.Decoder(ExportedMessage)
NO_SEQUENCE = 2**40
"""That no message has: a receipt that no claim gave must not name one that is sent in its very batch."""


class Side:
    """One engine, with what it alone knows: the ids and receipts it gave out, in order."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reader = engine.open_reader()
        self.ids: dict[int, str] = {}
        self.deliveries: list[tuple[str, Receipt]] = []
        self.events_read = 0
        self.withdrawals_read = 0
        self.last_events: dict[int, Any] = {}

    def close(self) -> None:
        self.reader.close()
        self.engine.close()

    def translate(self, command: Any, now_ms: int) -> Any:
        """The command with this side's receipts and ids, and its times made absolute."""
        changes: dict[str, Any] = {}
        match command:
            case Produce(_, message):
                changes["message"] = _at(message, now_ms)
            case ProduceMany(_, many):
                changes["messages"] = tuple(_at(message, now_ms) for message in many)
            case ProduceEach(many):
                changes["messages"] = tuple((queue, _at(message, now_ms)) for queue, message in many)
            case RelayMessages(_, _, relayed):
                changes["messages"] = tuple(
                    msgspec.structs.replace(each, message=_at(each.message, now_ms)) for each in relayed
                )
            case AddToMessageBatch(_, members):
                changes["messages"] = tuple(
                    msgspec.structs.replace(each, message=_at(each.message, now_ms)) for each in members
                )
            case OfferMany(_, offerings):
                changes["offerings"] = tuple(_at(each, now_ms) for each in offerings)
            case RescheduleKey():
                changes["process_after"] = now_ms + command.process_after
            case AckRevision(queue, key, kind, age):
                found = self.reader.keyed_message(queue, key, kind)
                if found is not None and age < 8 and found.message.keyed is not None:
                    changes["revision"] = found.message.keyed.revision
            case Redrive() | Delete():
                changes["message_ids"] = tuple(self._id(int(age)) for age in command.message_ids)
                changes["queue"] = self._place(int(command.message_ids[0]), command.queue)
            case TrimHistory():
                changes["finished_before"] = now_ms + command.finished_before
            case TrimEvents():
                changes["before_ms"] = now_ms - command.before_ms
            case _ if isinstance(command, (Resubmit, *BY_ID)):
                changes["queue"] = self._place(int(command.message_id), command.queue)
        if receipts := getattr(command, "receipts", None):
            changes["receipts"] = tuple(map(self._meant, receipts))
            if command.queue is not None and self.deliveries and receipts[0].seq < 8:
                changes["queue"] = self._queue(receipts[0].seq, command.queue)
        if getattr(command, "message_id", None) is not None:
            changes["message_id"] = self._id(int(command.message_id))
        if isinstance(command, AckById | NackById) and command.token is not None:
            sequence, token = self._receipt(command.token)
            message_id = self.ids.get(sequence, changes["message_id"])
            changes |= {"queue": self._queue(command.token, "a"), "message_id": message_id, "token": token}
        return msgspec.structs.replace(command, **changes) if changes else command

    def _place(self, age: int, otherwise: str) -> str:
        """Mostly the queue that the message is in."""
        known = list(self.ids)
        if age >= min(len(known), 8):
            return otherwise
        return self.reader.queues_of([known[-1 - age]]).get(known[-1 - age], otherwise)

    def _meant(self, stand_in: Receipt) -> Receipt:
        receipt = self._receipt(stand_in.seq)
        return Receipt(receipt.seq, stand_in.token) if stand_in.token else receipt

    def _receipt(self, age: int) -> Receipt:
        return self.deliveries[-1 - age][1] if age < len(self.deliveries) else Receipt(NO_SEQUENCE, age)

    def _queue(self, age: int, otherwise: str) -> str:
        """Mostly the queue that the message was delivered from: a wrong one would only ever be refused."""
        return self.deliveries[-1 - age][0] if age < len(self.deliveries) else otherwise

    def _id(self, age: int) -> str:
        known = list(self.ids.values())
        return known[-1 - age] if age < len(known) else "00000000-0000-7000-8000-000000000000"

    def run(self, batch: list[Any], parked: dict[str, list[Claim]], now_ms: int) -> tuple[Any, int | None]:
        """Execute and commit; what came of it without what only this side can know, and the next due time."""
        translated = [self.translate(command, now_ms) for command in batch]
        receivers = waiting(parked)
        result = self.execute(translated, now_ms, receivers, shared=len(batch) % 2 == 1)
        outcomes = [
            self.take(command, outcome) for command, outcome in zip(translated, result.outcomes, strict=True)
        ]
        served = {
            queue: [(place, self._take(queue, deliveries)) for place, deliveries in parts]
            for queue, parts in sorted(served_by_queue(result, receivers).items())
        }
        durations = {key: sorted(values) for key, values in result.durations.items()}
        changes = (result.woken, durations, dict(result.moved_in))
        rest = (result.failed_queued, *changes, self.new_events(), runs_of(result), self.new_withdrawals())
        said = (outcomes, served, result.events, *rest, self._endings(result))
        return said, result.next_due_ms

    def execute(
        self,
        translated: Sequence[Any],
        now_ms: int,
        receivers: Mapping[str, Sequence[Receiver]],
        *,
        shared: bool,
    ) -> BatchResult:
        """Execute and commit commands of this side, while somebody waits for the end of every third message."""
        awaited = {message_id for sequence, message_id in self.ids.items() if sequence % 3 == 0}
        batch = Batch(translated, now_ms, receivers, shared=shared, awaited_ends=awaited)
        result = self.engine.execute_batch(batch)
        self.engine.commit()
        for done in result.own_work:
            if done.sequence is not None:
                assert done.message_id is not None
                assert self.ids.setdefault(done.sequence, done.message_id) == done.message_id
        for outcome in result.outcomes:
            self._learn_ids(outcome)
        return result

    def take(self, command: Any, outcome: Any) -> Any:
        """The outcome of a command without this side's ids and receipts, which are noted."""
        return self._take(command.queue if isinstance(command, Claim) else "", outcome)

    def new_events(self) -> dict[int, list[Any]]:
        """The events of this batch by message, in order, without what only this side can know."""
        last = self.engine.snapshot().logs["events"].last
        new = read_events(self.reader, after=self.events_read)
        assert [event["id"] for event in new] == list(range(self.events_read + 1, last + 1))
        self.events_read = last
        by_message: dict[int, list[Any]] = {}
        for event in new:
            # A relay does not tell the ids of its messages: their first event does.
            known = self.ids.setdefault(event["sequence"], event["messageId"])
            assert known == event["messageId"]
            self.last_events[event["sequence"]] = event
            by_message.setdefault(event["sequence"], []).append(event | {"id": 0, "messageId": ""})
        return by_message

    def new_withdrawals(self) -> list[tuple[str, int, str]]:
        """Queue, sequence number and end of what this batch withdrew from its consumer."""
        latest = self.engine.snapshot().withdrawn
        new = latest.after(self.withdrawals_read)
        self.withdrawals_read = latest.last
        sequences = self._sequences()
        return sorted((each.queue, sequences[each.message_id], each.how) for each in new)

    def _endings(self, result: BatchResult) -> dict[int, str]:
        """How messages ended in this batch, by their sequence numbers."""
        sequences = self._sequences() if result.ended else {}
        return {sequences[message_id]: ending for message_id, ending in result.ended.items()}

    def _sequences(self) -> dict[str, int]:
        return {message_id: sequence for sequence, message_id in self.ids.items()}

    def _learn_ids(self, outcome: Any) -> None:
        match outcome:
            case Offered() | Produced():
                assert self.ids.setdefault(outcome.sequence, outcome.id) == outcome.id
            case Deferred(done=tuple(parts)) | tuple(parts):
                for each in parts:
                    self._learn_ids(each)

    def _take(self, queue: str, outcome: Any) -> Any:
        """The outcome without this side's ids and receipts, which are noted."""
        match outcome:
            case Compacted():  # the oracle has no pages
                return None
            case Offered() | Produced():
                return msgspec.structs.replace(outcome, id="")
            case MessageBatch():
                sent = {name: getattr(outcome, name) and "" for name in ("then_id", "on_dead_id")}
                return msgspec.structs.replace(outcome, **sent)
            case MessageBatchPage():
                return [self._take(queue, each) for each in outcome.batches], outcome.next
            case Delivery():
                receipt = Receipt.parse(outcome.receipt)
                assert receipt.seq == outcome.sequence
                assert self.ids.setdefault(outcome.sequence, outcome.id) == outcome.id
                self.deliveries.append((queue, receipt))
                return msgspec.structs.replace(outcome, id="", receipt="")
            case tuple():
                return tuple(self._take(queue, each) for each in outcome)
            case Deferred(done=tuple(done)):
                return Deferred(self._take(queue, done))
            case Schedule(last_run=SavedRun() as last):
                return msgspec.structs.replace(outcome, last_run=_without_id(last))
            case Exception():
                return type(outcome), str(outcome)
            case _:
                return outcome

    def view(self) -> Any:
        """Everything a reader can see, and what the engine keeps in mind; when the oldest came see `oldest`."""
        seen = []
        for queue in QUEUES:
            everything = self.reader.browse(queue, None, 1_000)
            for message in everything:
                assert self.ids.setdefault(message.sequence, message.id) == message.id
                assert self.reader.message(queue, message.id) == message
            peeked = [message.sequence for message in self.reader.peek(queue, 1_000)]
            shuffled = [message.sequence for message in self.reader.peek_shuffled(queue, 1_000)]
            assert sorted(shuffled) == sorted(peeked)
            keys = self.keys(queue, everything)
            counts, _ = self.reader.queue(queue)
            seen.append((counts, _anonymous(everything), peeked, keys, self.engine.snapshot().rules(queue)))
        engine = self.engine
        known = (
            dict(engine.snapshot().counts),
            dict(engine.snapshot().settings),
            dict(engine.snapshot().tokens),
            dict(engine.snapshot().sessions),
            list(engine.snapshot().redrives.items()),
            engine.snapshot().staging,
            engine.snapshot().schedules,
            self.schedules(),
            [self.reader.apps_named(app) for app in "mno"],
            # Without their numbers, in which batches that were undone leave gaps.
            [app for _, app in self.reader.list_apps(0, 100)],
            dict(engine.snapshot().consumers),
            [self._pages(consumer) for _, consumer in sorted(engine.snapshot().consumers.items())],
            engine.snapshot().logs["events"]._replace(bytes_before_first=0),
        )
        return seen, self.reader.queues(), known, self.reader.queues_of(list(self.ids)), self.history(3)

    def schedules(self) -> list[Any]:
        """All schedules, read page by page, with their runs."""
        found: list[Any] = []
        after: str | None = ""
        while after is not None:
            page = self.reader.schedules(after, 2)
            for schedule in page.schedules:
                details = self.reader.schedule(schedule.name, 99)
                assert details is not None
                assert details[0] == schedule
                assert details[1][:1] == (() if schedule.last_run is None else (schedule.last_run,))
                runs = [_without_id(done) for done in details[1]]
                found.append((msgspec.structs.replace(schedule, last_run=None), runs))
            after = page.next
        return found

    def keys(self, queue: str, everything: list[MessageInfo]) -> Any:
        """All pending keys of a queue, read in pages, and what waits behind each."""
        found: list[MessageInfo] = []
        after: tuple[str, str] | None = None
        while True:
            page, after = self.reader.keyed_messages(queue, "", None, after, 2)
            found += page
            if after is None:
                break
        assert all(each in everything for each in found)
        keyed = [each.keyed for each in found if each.keyed is not None]
        assert len({(each.kind, each.key) for each in keyed}) == len(keyed) == len(found)
        pending = [self.reader.keyed_message(queue, each.key, each.kind) for each in keyed]
        assert [each and each.message for each in pending] == found
        return [each and each.once_more for each in pending]

    def history(self, limit: int) -> Any:
        """All that is kept of finished messages, read page by page, and what the engine keeps in mind of it."""
        snapshot = self.engine.snapshot()
        pages, at, ends = [], 0, snapshot.logs["history"][1:3]
        while at < ends[1]:
            page = self.reader.log_lines("history", at, None, limit, None)
            pages.append((lines_of(page.lines), page.next, page[2:]))
            assert page[2:] == ends
            at = page.next
        finished = [line for lines, _, _ in pages for line in lines]
        for line in finished:  # one that waited behind another may come and go in one batch
            assert self.ids.setdefault(line["sequence"], line["id"]) == line["id"]
        of_queue = self.reader.log_lines("history", 0, None, limit, QUEUES[0])
        lines = ([{**line, "id": ""} for line in lines] for lines in (finished, lines_of(of_queue.lines)))
        return [snapshot.history_of(queue) for queue in (None, *QUEUES)], ends, *lines, of_queue.next

    def find_finished(self, queue: str, wanted: MessageFilter, limit: int, scan_max: int) -> Any:
        """A search in the history, all its pages, for any outcome and for one."""
        pages, before = [], None
        for outcome in (None, "acked"):
            while True:
                found = self.reader.find_finished(queue, wanted, outcome, before, limit, scan_max)
                for message in found.messages:
                    assert self.reader.finished(queue, message.id) == message
                pages.append(msgspec.structs.replace(found, messages=_anonymous(found.messages)))
                before = found.next_before
                if before is None:
                    break
        return pages

    def _pages(self, consumer: PipelineConsumer) -> list[Any]:
        """The lines of all leases of a consumer that can be read, without ids."""
        leases = []
        for number in range(consumer.leased + 1):
            pages = self.reader.lease_pages(consumer.queue, consumer.name, number, 0, 99)
            lease = consumer.readable(number)
            assert lease is None or len(pages) == lease.pages
            assert lease is None or sum(map(len, pages)) == lease.bytes
            lines = [LINE.decode_lines(page) for page in pages]
            for line in [line for page in lines for line in page]:
                assert self.ids[line.sequence] == line.id
            leases.append([_anonymous(page) for page in lines])
        return leases

    def search(self, queue: str, wanted: MessageFilter, before: int | None, limit: int, scan_max: int) -> Any:
        """A search, the same with rows and counted, and the errors of what it may look at."""
        found = self.reader.search(queue, wanted, before, limit, scan_max)
        rows = self.reader.find_messages(queue, wanted, before, limit, scan_max)
        count = self.reader.count_messages(queue, wanted, before, scan_max)
        groups = self.reader.error_groups(queue, before, scan_max)
        found = msgspec.structs.replace(found, messages=_anonymous(found.messages))
        return found, msgspec.structs.replace(rows, rows=_anonymous(rows.rows)), count, groups

    def lists(self, queue: str, limit: int) -> list[Any]:
        """Every list of a queue, read page by page."""
        lists = []
        for state in get_args(ListedState):
            rows: list[Any] = []
            cursor: str | None = None
            while True:
                page = self.reader.list_messages(queue, state, cursor, limit)
                rows += _anonymous(page.rows)
                assert len(page.rows) == limit or page.next is None
                if page.next is None:
                    break
                cursor = page.next
            lists.append(rows)
        return lists


def lines_of(lines: bytes) -> list[Any]:
    return [msgspec.json.decode(line) for line in lines.splitlines()]


def runs_of(result: BatchResult) -> list[SavedRun]:
    """The runs of schedules that were due, without ids."""
    return [_without_id(done) for done in result.own_work if isinstance(done, SavedRun)]


def _without_id(done: SavedRun) -> SavedRun:
    return msgspec.structs.replace(done, message_id=None)


def _anonymous(messages: list[Any]) -> list[Any]:
    return [msgspec.structs.replace(message, id="") for message in messages]


def _at(message: SentT, now_ms: int) -> SentT:
    if message.process_after is None:
        return message
    return msgspec.structs.replace(message, process_after=now_ms + message.process_after)
