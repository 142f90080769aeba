"""The books of a trial: every commit, checked against the one before, and what clients were told, against both.

The engine's side is kept by `committed`, called with each batch and the table after it; the clients' side by the
methods after it. What is checked in the engine's side is noted in `violations`, because raised there it would only be
one more failure of the database.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from forq_trio.model.commands import Claim
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts, Receipt, Status
from forq_trio.model.queues.setting_values import Order
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.engine import ACKED, CLEANED_UP, CONSUMED, PRODUCED, Batch, BatchResult
from reliability.whole_app.batches import BatchBooks
from reliability.whole_app.causes import Causes
from reliability.whole_app.deeds import Deeds, queues_forgotten
from reliability.whole_app.keyed import Offers
from reliability.whole_app.order import check_held, check_order, check_place, check_strict_groups
from reliability.whole_app.stores import Stored, Table, counted
from reliability.whole_app.violations import Clause, Violation, hold

RulesAround = Callable[[str], tuple[QueueRules, ...]]
LATE_MS_MAX = 1_000
_CONTENTS = ("{}", "{}", "{}", "\ufeff{}", "[NaN, {}]", "[" * 101 + "{}" + "]" * 101)
"""Any text is a content, also what looks like JSON and is none that others read."""


class Books:
    """table: as of the last commit. gone: why each message went that is not stored any more, by content.

    sequences: of every message that was ever stored, by content. handed: contents by receipt that some client got.
    seen: how often what happened, so that one can tell that a trial is one.
    """

    def __init__(self) -> None:
        self.table: Table = {}
        self.gone: dict[str, str] = {}
        self.sequences: dict[str, int] = {}
        self.duplicates: set[str] = set()
        self.handed: dict[str, str] = {}
        self.violations: list[Violation] = []
        self.seen: Counter[str] = Counter()
        self._batches = BatchBooks()
        self._messages: dict[str, NewMessage] = {}
        self._delivered: dict[str, str] = {}
        self._delivered_in_this_life: set[tuple[int, int]] = set()
        self._first_sends: dict[tuple[str, str], tuple[str, int, int]] = {}
        self._grouped: set[str] = set()
        self._keyed: set[str] = set()
        self._latest_ms = 0
        self._contents = 0
        self._newest_answered = 0
        self._answered: set[str] = set()
        self._refused: set[str] = set()

    # What the engine did

    def begin_life(self, table: Table) -> None:
        """The store was opened again."""
        hold(Clause.DURABLE, table == self.table, "{}", _differences(self.table, table))
        self._delivered_in_this_life.clear()

    def committed(
        self, batch: Batch, result: BatchResult, parked: Mapping[int, Claim], after: Table, rules: RulesAround
    ) -> None:
        """A batch was committed. parked: the receivers it served; rules: around it."""
        before, self.table = self.table, after
        self.seen["commits"] += 1
        self._latest_ms = max(self._latest_ms, batch.now_ms)
        try:
            deeds = Deeds(batch, result, parked, before)
            self._check_sends(deeds, rules)
            forgotten = queues_forgotten(batch, result)
            for key in [key for key in self._first_sends if key[0] in forgotten]:
                del self._first_sends[key]
            causes = Causes(before, after, deeds, rules)
            offers = self._check_offers(deeds, causes, before)
            self._check_settlements(deeds, causes, before)
            for seq, row in before.items():
                new = after.get(seq)
                if new is None:
                    cause = self.gone[offers.content_of(row)] = causes.of_going(row)
                    self.seen[cause] += 1
                elif seq in deeds.updated:
                    causes.of_update(row, new, offers.content_of(row))
                elif new is not row and new != (alike := row._replace(waiting=new.waiting, bytes=new.bytes)):
                    causes.of_change(alike, new)
            # A group comes with a message that is sent, and with a dead letter that is moved or sent again.
            self._grouped |= {row.queue for row in after.values() if row.group}
            # What was moved here in this batch came after what was sent in it.
            others = [
                row
                for seq, row in after.items()
                if before.get(seq, row).queue == row.queue and seq not in deeds.updated
            ]
            self._batches.committed(batch, result, after)
            new = self._batches.appeared(after[seq] for seq in after.keys() - before.keys())
            self.seen["batches that ended"] += len(new)
            self.sequences |= new
            for seq in after.keys() - before.keys():
                self._appeared(after[seq], others, deeds, rules)
            self._check_deliveries(deeds, causes, before, after)
            causes.of_groups()
            check_order(deeds, after, offers.promoted.keys())
            self.seen["several of a strict group"] += check_strict_groups(
                deeds, after, offers.promoted.keys(), lambda queue: rules(queue)[-1].strict_groups
            )
            self._count_deeds(deeds, parked)
            self._check_events(result, before, after, deeds)
        except Violation as violation:
            self.violations.append(violation)

    def _check_sends(self, deeds: Deeds, rules: RulesAround) -> None:
        for queue, message, produced, copy in deeds.sent:
            content, key = message.content, message.deduplication_id
            if not produced.duplicate:
                known = content in self.sequences or produced.sequence in self.sequences.values()
                hold(Clause.DOUBLED, not known, "{} is stored again: {}", produced, message)
                self.sequences[content] = produced.sequence
                if not copy:
                    self._messages[content] = message
                if message.group is not None:
                    self._grouped.add(queue)
                if produced.sequence not in self.table:
                    overflow = {each.overflow.value for each in rules(queue)} - {"reject"}
                    hold(Clause.LOST, overflow, "{} is not stored: {}", produced, message)
                    self.gone[content] = "overflow"
            else:
                self.duplicates.add(content)
            if key is not None:
                self._check_first_send(queue, message, produced, deeds.now_ms, rules(queue)[-1])

    def _check_offers(self, deeds: Deeds, causes: Causes, before: Table) -> Offers:
        for queue, _, offering, offered in deeds.offers:
            hold(Clause.DOUBLED, offering.content not in self.sequences, "stored again: {}", offering)
            self._messages[offering.content] = offering.message
            self._keyed.add(offering.content)
            if offering.group is not None:
                self._grouped.add(queue)
            self.seen["once more" if offered.once_more else f"offer {offered.outcome}"] += 1
        offers = Offers(deeds, before, self.table)
        self.sequences |= offers.made | {content: seq for seq, content in offers.promoted.items()}
        self.seen["promoted"] += len(offers.promoted)
        self.gone |= offers.gone(causes, before)
        return offers

    def _check_first_send(self, queue: str, message: NewMessage, produced, now_ms: int, held_to) -> None:
        """Within its window a deduplication id stands for the first message."""
        key = queue, message.deduplication_id or ""
        first = self._first_sends.get(key)
        if produced.duplicate:
            hold(
                Clause.LOST, first is not None and now_ms < first[2], "{} was taken for another one", message
            )
            assert first is not None
            hold(
                Clause.ANSWER, (produced.id, produced.sequence) == first[:2], "{} is not {}", produced, first
            )
            return
        # Once the window was over by any clock, the id may have been forgotten.
        fresh = first is None or self._latest_ms >= first[2]
        hold(Clause.DOUBLED, fresh, "{} is a duplicate of {} and was stored", message, first)
        window_ms = message.deduplication_window_ms or held_to.deduplication_window_ms
        self._first_sends[key] = (produced.id, produced.sequence, now_ms + window_ms)

    def _check_settlements(self, deeds: Deeds, causes: Causes, before: Table) -> None:
        """A receipt worked if, and only if, it was one of the claims that the command takes."""
        for command, receipt, worked in deeds.settled:
            row = before.get(receipt.seq)
            current = (
                row is not None
                and deeds.takes(command, receipt, row)
                and getattr(command, "message_id", None) in (None, row.id)
            )
            if worked:
                current = current and command.queue in (None, *causes.places(row))
                hold(Clause.FENCE, current, "{} worked on {}", command, row)
            elif current and command.queue in (None, row.queue):
                # Sends go before their batch's settlements: what one of them replaced or pushed out is gone by then.
                moved = row.id in deeds.removed or row.id in deeds.moved_by_hand
                replaced = moved or deeds.dropped_by_key(row) or causes.made_room(row)
                overtaken = replaced or deeds.touches(row) or (row.due_at or deeds.now_ms) <= deeds.now_ms
                overtaken = overtaken or causes.may_refuse_to_extend(command, row)
                hold(Clause.FENCE, overtaken, "{} did not work on {}", command, row)

    def _appeared(self, row: Stored, others: Sequence[Stored], deeds: Deeds, rules: RulesAround) -> None:
        hold(Clause.DOUBLED, self.sequences.get(row.content) == row.seq, "nobody sent {}", row)
        hold(Clause.DOUBLED, row.content not in self._refused, "{} was refused", row)
        expected = 1 if row.seq in deeds.delivered else 0
        hold(Clause.ATTEMPTS, row.attempts == expected, "new: {}", row)
        if row.source_queue is None:
            held_to = rules(row.queue)[-1]
            lifo = held_to.order is Order.LIFO
            if row.seq not in deeds.updated:
                check_place(row, others, lifo=lifo, grouped=row.queue in self._grouped)
            if row.content in self._messages and row.content not in self._keyed:
                _check_times(row, self._messages[row.content], deeds.now_ms, held_to)

    def _check_deliveries(self, deeds: Deeds, causes: Causes, before: Table, after: Table) -> None:
        count = sum(len(handed.deliveries) for handed in deeds.handed)
        hold(Clause.HOLDERS, count == len(deeds.delivered), "handed out twice in one batch: {}", deeds.handed)
        for seq, (_, delivery) in deeds.delivered.items():
            hold(Clause.LOST, seq in after, "handed out, but not stored: {}", delivery)
            hold(
                Clause.HOLDERS, delivery.receipt not in self._delivered, "a receipt came twice: {}", delivery
            )
            self._delivered[delivery.receipt] = delivery.content
            causes.of_delivery(None if seq in deeds.updated else before.get(seq), after[seq])
            self._delivered_in_this_life.add((seq, after[seq].token))

    def _count_deeds(self, deeds: Deeds, parked: Mapping[int, Claim]) -> None:
        self.seen["delivered"] += len(deeds.delivered)
        self.seen["served while parked"] += len(parked)
        self.seen["redriven"] += len(deeds.moved_by_hand)
        self.seen["released"] += sum(deeds.released(seq) for seq in deeds.worked)
        self.seen["stale receipts"] += sum(not settled.worked for settled in deeds.settled)
        self.seen["duplicates"] += sum(sent.produced.duplicate for sent in deeds.sent)

    @staticmethod
    def _check_events(result: BatchResult, before: Table, after: Table, deeds: Deeds) -> None:
        """What is counted for the metrics is what happened."""
        events: dict[str, int] = {}
        for event in result.events:
            events[event.kind] = events.get(event.kind, 0) + event.count
        change = events.get(PRODUCED, 0) - events.get(ACKED, 0) - events.get(CLEANED_UP, 0)
        hold(
            Clause.COUNTS,
            len(after) - len(before) == change,
            "{}, but {} -> {}",
            events,
            len(before),
            len(after),
        )
        hold(Clause.COUNTS, events.get(CONSUMED, 0) == len(deeds.delivered), "{}: {}", events, deeds.handed)

    def check_counts(self, counts: Mapping[str, QueueCounts]) -> None:
        """The counters say what the table holds."""
        actual = counted(self.table)
        for queue in actual.keys() | counts.keys():
            kept, found = counts.get(queue, QueueCounts()), actual.get(queue, QueueCounts())
            hold(Clause.COUNTS, kept == found, "{}: counted {}, stored {}", queue, kept, found)

    # What clients were told

    def next_content(self) -> str:
        """A content nobody used before."""
        self._contents += 1
        return _CONTENTS[self._contents % len(_CONTENTS)].format(self._contents)

    def sending(self) -> int:
        """Somebody is about to send; returns the highest sequence any answered send has by now."""
        return self._newest_answered

    def sent(self, content: str, newest_before: int) -> None:
        """A send was answered with success. newest_before: what `sending` returned."""
        if content in self.duplicates:
            return
        hold(Clause.LOST, content in self.sequences, "{} was answered and is not stored", content)
        in_order = self.sequences[content] > newest_before
        hold(Clause.ORDER, in_order, "{} was sent after {} had been answered", content, newest_before)
        self._answered.add(content)
        self._newest_answered = max(self._newest_answered, self.sequences[content])

    def sent_in_batch(self, content: str, newest_before: int, result: dict) -> None:
        """The same, for one message of several. result: as it was answered."""
        if "code" in result:
            self.refused(content)
            return
        self.sent(content, newest_before)
        duplicate = result.get("duplicate", False)
        hold(Clause.ANSWER, duplicate == (content in self.duplicates), "{} was answered {}", content, result)
        if not duplicate:
            hold(Clause.ANSWER, result["sequence"] == self.sequences[content], "{}: {}", content, result)

    def offered(self, content: str, newest_before: int, result: dict) -> None:
        """An offer was answered, perhaps as one of several. result: as it was answered."""
        if "code" in result or result["outcome"] == "ignored":
            self.refused(content)
            return
        hold(Clause.LOST, content in self.sequences, "{} was answered and is not stored", content)
        self._answered.add(content)
        if result["outcome"] == "created" and not result.get("onceMore", False):
            in_order = result["sequence"] > newest_before
            hold(Clause.ORDER, in_order, "{} was offered after {} had been answered", content, newest_before)
            self._newest_answered = max(self._newest_answered, result["sequence"])

    def refused(self, content: str) -> None:
        """A send was answered with an error by which nothing is stored."""
        hold(Clause.DOUBLED, content not in self.sequences, "{} was refused and is stored", content)
        self._refused.add(content)

    def received(self, messages: Iterable[dict]) -> None:
        """A client read these messages in an answer."""
        for message in messages:
            receipt, content = message["receipt"], message["content"]
            hold(Clause.ANSWER, self._delivered.get(receipt) == content, "never handed out: {}", message)
            hold(Clause.HOLDERS, receipt not in self.handed, "handed to two clients: {}", message)
            self.handed[receipt] = content
            if content not in self._messages:
                continue
            sent = self._messages[content]
            told = message.get("priority", sent.priority), message.get("group", sent.group)
            hold(Clause.ANSWER, told == (sent.priority, sent.group), "{} was received as {}", sent, message)

    def acked(self, receipt: str) -> None:
        """A client was told that it acknowledged its message."""
        content = self.handed[receipt]
        hold(Clause.ANSWER, self.gone.get(content) == "acked", "{} was acknowledged and is there", content)

    def stale_receipts(self) -> list[str]:
        """Receipts that clients have and that are not current any more."""
        current = {(row.seq, row.token) for row in self.table.values()}
        return [receipt for receipt in self.handed if Receipt.parse(receipt) not in current]

    def story(self) -> str:
        """What happened, in a form that is the same whenever the trial is."""
        seen, gone = sorted(self.seen.items()), sorted(self.gone.items())
        return f"{seen} {gone} {self.sequences} {list(self.handed.values())}"

    # When nothing goes on

    def check_parked(self, parked: Mapping[str, object], withholds: Callable[[str], bool]) -> None:
        """Nobody waits on a queue in which a message is ready. withholds: a queue may deliver nothing."""
        for queue in parked:
            ready = [row for row in self.table.values() if row.queue == queue and row.status == Status.READY]
            hold(Clause.PARKED, not ready or withholds(queue), "receivers wait on {} beside {}", queue, ready)

    def check_quiet(self, now_ms: int, rules: Callable[[str], QueueRules]) -> None:
        """After a while without clients and faults: time has done its work, and nothing is held by nobody."""
        check_held(self.table, rules)
        known = {(receipt.seq, receipt.token) for receipt in map(Receipt.parse, self.handed)}
        for row in self.table.values():
            due_at = row.due_at
            hold(Clause.LATE, due_at is not None, "a failed message was not dealt with: {}", row)
            hold(Clause.LATE, due_at > now_ms - LATE_MS_MAX, "at {} nothing had happened to {}", now_ms, row)
            if row.status == Status.PROCESSING and (row.seq, row.token) in self._delivered_in_this_life:
                hold(Clause.KEPT, (row.seq, row.token) in known, "nobody received {}", row)

    def check_end(self) -> None:
        """All is consumed: every answered send was stored, and went for a reason."""
        hold(Clause.LATE, not self.table, "still there after all was consumed: {}", self.table)
        self._batches.check_end()
        for content in self._answered:
            hold(Clause.LOST, content in self.gone, "{} was answered and is nowhere", content)


def _check_times(row: Stored, message: NewMessage, now_ms: int, held_to: QueueRules) -> None:
    """A new message falls due and expires when it, or else its queue, says."""
    delay_ms = held_to.delay_ms if message.delay_ms is None else message.delay_ms
    due_at = now_ms + delay_ms if message.process_after is None else message.process_after
    hold(Clause.EARLY, row.process_after == due_at, "{} should be due at {}: {}", message, due_at, row)
    ttl_ms = held_to.ttl_ms if message.ttl_ms is None else message.ttl_ms
    hold(Clause.LOST, row.expires_after == due_at + ttl_ms, "{} should live for {}: {}", message, ttl_ms, row)


def _differences(before: Table, after: Table) -> str:
    lost = [row for seq, row in before.items() if after.get(seq) != row]
    found = [row for seq, row in after.items() if before.get(seq) != row]
    return f"committed: {lost}; after a restart: {found}"
