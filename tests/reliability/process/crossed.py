"""One history of several servers: what their clients saw, held against the log of events of their database.

Clients note what they ask and what they are answered, whichever server answers. The events, which the history reads in
the order of commits, are played again: so it knows at each commit which messages were ready, and who held the others.

An event tells the size of a message, but neither its priority nor its group: so the size of each content says them. Nor
does it tell to which receive a message was given: of those that were given at the same time, the clients know that.

- FIFO: messages have priorities, and are given in their order.
- CAPPED: of each group one message may be in process.
- STRICT: the groups are strict. While a message of a group is in process, or waits for its next attempt, no other
  receive gets one of that group. A receive may get several, in their order.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

FIFO, CAPPED, STRICT, TICKS = "fifo", "capped", "strict", "ticks"
PRIORITIES = (100, 200)
GROUPS = ("a", "b", "c", "d")
CLOCKS_DIFFER_MS = 100
"""How far two servers may be apart in reading the database's clock."""
GONE = ("acked", "expired", "deleted", "dead_lettered", "cancelled")


class Violation(AssertionError):
    """The servers broke a promise"""


def hold(promise: bool, text: str, *values: object) -> None:
    if not promise:
        raise Violation(text.format(*values))


class Line(NamedTuple):
    """Whose order a message keeps: of its queue and priority, or of its queue and group."""

    queue: str
    number: int


def content_of(number: int, line: Line) -> str:
    """A content that nobody had before, of a size that says its line."""
    text = str(number)
    return text + "." * ((line.number - len(text)) % 4)


def line_of(queue: str, size: int) -> Line:
    return Line(queue, size % 4)


@dataclass
class Message:
    """As the events tell it. holder: the attempt of whoever has it, 0 for nobody. given_at: to whoever had it last."""

    line: Line
    attempts: int = 0
    holder: int = 0
    given_at: int = 0


class Given(NamedTuple):
    """A delivery."""

    sequence: int
    attempt: int


class Held(NamedTuple):
    """A delivery that a client received and has not begun to settle."""

    attempts: int
    lease_until: int


class History:
    """See the module. events: how many were read. seen: how much of what was seen."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.events = 0
        self.tick_ids: set[str] = set()
        self._numbers = 0
        self._newest_answered = 0
        self._sequences: dict[str, int] = {}
        self._held: dict[int, Held] = {}
        self._received: dict[int, int] = {}
        self._receives: dict[Given, int] = {}  # the number of each receive
        self._together: list[tuple[Given, Given]] = []  # of one strict group, at the same time
        self._acked: set[int] = set()
        self._stored: dict[int, Message] = {}
        self._lines: defaultdict[Line, dict[int, Message]] = defaultdict(dict)
        self._made: set[int] = set()
        self._gone: dict[int, tuple[str, int]] = {}

    @property
    def pending(self) -> int:
        """Messages that were answered, less those whose acknowledgement was."""
        return len(self._sequences) - len(self._acked)

    @property
    def left(self) -> bool:
        """Something is stored, or was answered and is not among the events yet."""
        return bool(self._stored) or not self._made.issuperset(self._sequences.values())

    # What clients ask, and are answered

    def new_content(self, line: Line) -> str:
        self._numbers += 1
        return content_of(self._numbers, line)

    def sending(self) -> int:
        """Somebody is about to send; returns what `sent` is told."""
        return self._newest_answered

    def sent(self, newest_before: int, contents: Sequence[str], sequences: Sequence[int]) -> None:
        """A send was answered with success."""
        for content, sequence in zip(contents, sequences, strict=True):
            hold(sequence > newest_before, "{} was stored before {}", sequence, newest_before)
            newest_before = sequence
            self._sequences[content] = sequence
        self._newest_answered = max(self._newest_answered, newest_before)
        self.seen["sent"] += len(contents)

    def answered(self, messages: Sequence[dict[str, Any]]) -> None:
        """A client has the answer of a receive."""
        self.seen["receives"] += 1
        for message in messages:
            self._receives[Given(message["sequence"], message["attempts"])] = self.seen["receives"]
            self._received_one(message)

    def _received_one(self, message: dict[str, Any]) -> None:
        """A client has this message, which is nobody else's, unless the answer came after the end of its lease."""
        sequence, attempts, content = message["sequence"], message["attempts"], message["content"]
        known, now_ms = self._sequences.get(content, sequence), time.time_ns() // 1_000_000
        hold(known == sequence, "{} was answered with {}", message, known)
        if now_ms > message["leaseUntil"] - CLOCKS_DIFFER_MS:  # its server was stopped meanwhile
            self.seen["received late"] += 1
            return
        hold(sequence not in self._acked, "acknowledged, and here again: {}", message)
        hold(attempts > self._received.get(sequence, 0), "received twice: {}", message)
        self._received[sequence] = attempts
        held = self._held.get(sequence)
        if held is not None:
            over = now_ms > held.lease_until - CLOCKS_DIFFER_MS
            hold(over, "at {} somebody had it until {}: {}", now_ms, held.lease_until, message)
        self._held[sequence] = Held(attempts, message["leaseUntil"])
        self.seen["received"] += 1

    def settling(self, message: dict[str, Any]) -> None:
        """A client asks to settle its delivery: from now on it may be anybody's."""
        held = self._held.get(message["sequence"])
        if held is not None and held.attempts == message["attempts"]:
            del self._held[message["sequence"]]

    def acked(self, message: dict[str, Any]) -> None:
        """The acknowledgement of a delivery was answered with success."""
        hold(message["sequence"] not in self._acked, "acknowledged twice: {}", message)
        self._acked.add(message["sequence"])
        self.seen["acked"] += 1

    # What was committed

    def read(self, events: Iterable[dict[str, Any]]) -> None:
        """Play the next events."""
        for _, batch in groupby(events, itemgetter("at")):
            self._play(list(batch))

    def _play(self, batch: Sequence[dict[str, Any]]) -> None:
        """The events of one commit: no two commits are told apart that have the same time."""
        touched = {event["sequence"] for event in batch}
        newest: dict[Line, int] = {}
        for event in batch:
            message = self._stored.get(event["sequence"])
            if event["kind"] == "delivered" and message is not None and event["queue"] != TICKS:
                newest[message.line] = max(newest.get(message.line, 0), event["sequence"])
        passed = [each for line, sequence in newest.items() for each in self._before(line, sequence)]
        for event in batch:
            self.events += 1
            hold(event["id"] == self.events, "event {} instead of {}", event["id"], self.events)
            self.seen[event["kind"]] += 1
            self._change(event)
        hold(touched.issuperset(passed), "{} were passed by {}", set(passed) - touched, newest)
        for line in newest:
            if line.queue == CAPPED:
                holders = [sequence for sequence, message in self._lines[line].items() if message.holder]
                hold(len(holders) <= 1, "in process at once, of one group: {}", holders)

    def _before(self, line: Line, sequence: int) -> Iterator[int]:
        """The messages that nobody has and that come before this one, which is in that line."""
        for each, message in self._lines[line].items():
            if each < sequence and message.holder == 0:
                yield each
        if line.queue == FIFO:
            for number in range(line.number + 1, len(PRIORITIES)):
                higher = self._lines[Line(FIFO, number)].items()
                yield from (each for each, message in higher if message.holder == 0)

    def _change(self, event: dict[str, Any]) -> None:
        kind, sequence, attempt = event["kind"], event["sequence"], event["attempt"]
        if kind == "produced":
            hold(sequence not in self._made, "stored twice: {}", event)
            self._made.add(sequence)
            message = Message(line_of(event["queue"], event["bytes"]))
            self._stored[sequence] = self._lines[message.line][sequence] = message
            if event["queue"] == TICKS:
                self.tick_ids.add(event["messageId"])
            return
        hold(sequence in self._stored, "it is gone: {}; {}", event, self._gone.get(sequence))
        message = self._stored[sequence]
        if kind == "delivered":
            hold(message.holder == 0, "attempt {} has it: {}", message.holder, event)
            hold(attempt == message.attempts + 1, "after {} attempts: {}", message.attempts, event)
            if message.line.queue == STRICT:
                self._check_strict(message.line, Given(sequence, attempt), event["at"])
            message.attempts = message.holder = attempt
            message.given_at = event["at"]
        elif kind in ("nacked", "lease_expired", "released"):
            # A receipt is current until the next delivery, also when its lease has ended.
            by_consumer = kind != "lease_expired" or event.get("reason") == "ended_by_consumer"
            late = by_consumer and message.holder == 0 and message.attempts == attempt
            hold(late or message.holder == attempt, "attempt {} has it: {}", message.holder, event)
            message.holder = 0
            message.attempts -= kind == "released"
        elif kind in GONE:
            hold(message.holder in (0, attempt), "attempt {} has it: {}", message.holder, event)
            self._gone[sequence] = kind, attempt
            del self._stored[sequence]
            del self._lines[message.line][sequence]

    def _check_strict(self, line: Line, given: Given, at: int) -> None:
        """A message of a strict group is given to somebody: none before it waits, and others were given with it."""
        for sequence, message in self._lines[line].items():
            if message.holder:
                hold(message.given_at == at, "in process since {}: {}; {}", message.given_at, sequence, given)
                self._together.append((Given(sequence, message.holder), given))
            else:
                hold(sequence >= given.sequence, "{} waits, and is before {}", sequence, given)

    # The end

    def check_end(self) -> None:
        """After everything was consumed."""
        hold(not self._stored, "left: {}", self._stored)
        for each in self._together:
            receives = {self._receives[given] for given in each if given in self._receives}
            hold(len(receives) < 2, "of one group, to the receives {}: {}", receives, each)
        self.seen["several of a group"] = len(self._together)
        lost = {content for content, sequence in self._sequences.items() if sequence not in self._made}
        hold(not lost, "answered, and not stored: {}", lost)
        for sequence in self._acked:
            hold(self._gone[sequence][0] == "acked", "acknowledged: {} {}", sequence, self._gone[sequence])
        others = {kind for kind, _ in self._gone.values()} - {"acked"}
        hold(not others, "messages went otherwise: {}", others)
