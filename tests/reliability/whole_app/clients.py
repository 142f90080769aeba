"""Who uses the queue in a trial: producers, consumers and an administrator, at random.

They do what clients do and tell the books what they were told. Every message has a content of its own, so that
messages can be told apart.
"""

import random
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import trio

from reliability.whole_app.batches import REPORTS
from reliability.whole_app.books import Books
from reliability.whole_app.front import Answer, Front
from support.actors import elapse

ORDERED = "d.fifo"
"""Most of the time its groups are strict. SQS takes it for a FIFO queue."""
QUEUES = ("a", "b", "c_lifo", ORDERED)
DEAD_LETTER_QUEUES = ("a-dlq", "b-dlq", "c_lifo-dlq", "d.fifo-dlq", "x")
KEYS = ("k", "k", "k", "l%2Fm")
MODES = ("create", "createOrUpdate", "createIfAbsent", "debounce", "onceMore", "onceMore", "onceMore")
PAUSE_SECONDS = (0, 0, 0, 0.0003, 0.001, 0.1, 2)
LEASES_MS = (0, 5, 1_000, 100_000)
WAITS_MS = (0, 0, 10, 5_000, 30_000)
WAIT_MS_MAX = 30_000
VISIBILITY_SECONDS = (0, 0, 1, 100)
EXPIRES_MS = 90 * 86_400_000
"""Longer than any trial."""
CAREFUL = ("ack", "ack", "ack", "one", "nack", "extend", "release", "hang", "stale", "sqs", "cancelled")
CLUMSY = ("nack", "nack", "nack", "one", "ack", "hang", "stale", "sqs", "cancelled")


class Clients:
    """clock: the wall clock by which delays are asked for. All draw from one stream of random numbers."""

    def __init__(self, rng: random.Random, front: Front, books: Books, now_ms: Callable[[], int]) -> None:
        self._rng = rng
        self._front = front
        self._books = books
        self._now_ms = now_ms
        self._habits = rng.choice((CAREFUL, CAREFUL, CLUMSY))

    async def pause(self) -> None:
        seconds = self._rng.choice(PAUSE_SECONDS)
        if seconds:
            await elapse(seconds)
        else:
            await trio.lowlevel.checkpoint()

    # Producers

    async def produce(self) -> None:
        for _ in range(self._rng.randrange(1, 7)):
            await self.pause()
            queue = self._rng.choice(QUEUES)
            match self._rng.randrange(10):
                case 0 | 1 | 2 | 3 | 4:
                    await self._send(queue)
                case 5 | 6:
                    await self._send_batch(queue)
                case 7 | 8:
                    await self._offer(queue, self._rng.choice(KEYS))
                case _:
                    await self._offer_batch(queue)

    def _message(self, queue: str) -> dict[str, Any]:
        rng = self._rng
        message: dict[str, Any] = {"content": self._books.next_content()}
        if queue == ORDERED and rng.random() < 0.8:
            message["group"] = rng.choice("gh")
        if rng.random() < 0.5:
            return message
        options: dict[str, Callable[[], Any]] = {
            "priority": lambda: rng.choice((0, 100, 1_000)),
            "delayMs": lambda: rng.choice((0, 1, 50, 3_000)),
            "deduplicationId": lambda: rng.choice("kl"),
            "ttlMs": lambda: rng.choice((1, 500, 10_000)),
            "group": lambda: rng.choice("gh"),
            "maxAttempts": lambda: rng.choice((1, 2)),
            "deadLetterQueue": lambda: rng.choice(("", "x")),
            "attributes": lambda: {"k": "größe"},
        }
        for name in rng.sample(list(options), rng.randrange(1, 4)):
            message[name] = options[name]()
        if "deduplicationId" in message and rng.random() < 0.5:
            message["deduplicationWindowMs"] = rng.choice((1, 1_000))
        if "delayMs" not in message and rng.random() < 0.2:
            message["processAfter"] = self._now_ms() + rng.choice((-5_000, 0, 1, 1_000))
        return message

    async def _send(self, queue: str) -> None:
        message = self._message(queue)
        newest = self._books.sending()
        answer = await self._front.ask("POST", f"/{queue}/messages", message)
        if answer is None:
            return
        if answer.ok:
            self._books.sent(message["content"], newest)
        elif answer.nothing_happened:
            self._books.refused(message["content"])

    async def _send_batch(self, queue: str) -> None:
        messages = [self._message(queue) for _ in range(self._rng.randrange(1, 5))]
        newest = self._books.sending()
        answer = await self._front.ask("POST", f"/{queue}/messages/batch", {"messages": messages})
        if answer is None:
            return
        if answer.nothing_happened:
            for message in messages:
                self._books.refused(message["content"])
        elif answer.ok:
            for message, result in zip(messages, answer.body["results"], strict=True):
                self._books.sent_in_batch(message["content"], newest, result)

    def _offering(self, queue: str) -> dict[str, Any]:
        rng = self._rng
        offering = self._message(queue)
        offering.pop("deduplicationId", None)
        offering.pop("deduplicationWindowMs", None)
        mode = rng.choice(MODES)
        if mode == "debounce":
            offering.pop("processAfter", None)
            offering["delayMs"] = rng.choice((0, 1, 50, 3_000))
            if rng.random() < 0.5:
                offering["maxWaitMs"] = rng.choice((1, 60))
        return offering | {"mode": mode}

    async def _offer(self, queue: str, key: str) -> None:
        offering = self._offering(queue)
        newest = self._books.sending()
        answer = await self._front.ask("PUT", f"/{queue}/keys/{key}", offering)
        if answer is None:
            return
        if answer.ok:
            self._books.offered(offering["content"], newest, answer.body)
        elif answer.nothing_happened:
            self._books.refused(offering["content"])

    async def _offer_batch(self, queue: str) -> None:
        rng = self._rng
        offerings = [
            self._offering(queue) | {"key": unquote(rng.choice(KEYS)), "kind": rng.choice(("", "t"))}
            for _ in range(rng.randrange(1, 5))
        ]
        newest = self._books.sending()
        answer = await self._front.ask("POST", f"/{queue}/keys", {"messages": offerings})
        if answer is None:
            return
        if answer.nothing_happened:
            for offering in offerings:
                self._books.refused(offering["content"])
        elif answer.ok:
            for offering, result in zip(offerings, answer.body["results"], strict=True):
                self._books.offered(offering["content"], newest, result)

    async def _work_on_key(self, queue: str) -> None:
        """Look at a key, then drop it, acknowledge what was seen, or give it another time."""
        rng, path = self._rng, f"/{queue}/keys/{self._rng.choice(KEYS)}"
        found = await self._front.ask("GET", path)
        if found is None or not found.ok:
            return
        await self.pause()
        once_more = rng.random() < 0.3
        match rng.randrange(3):
            case 0:
                await self._front.ask("DELETE", path, query=f"onceMore={str(once_more).lower()}")
            case 1:
                revision = found.body["message"]["keyed"]["revision"]
                await self._front.ask("DELETE", path, query=f"revision={revision}")
            case _:
                wanted = {"delayMs": rng.choice((0, 50)), "onceMore": once_more}
                await self._front.ask("PATCH", path, wanted)

    async def batch(self) -> None:
        """Open a batch, add members, and mostly close it."""
        rng = self._rng
        name = f"{rng.getrandbits(64):x}"
        then = {"queue": REPORTS, "message": {"content": self._books.next_content()}}
        wanted = {"then": then, "expiresMs": EXPIRES_MS}
        opened = await self._front.ask_about_batch("PUT", name, wanted)
        if opened is None or not opened.ok:
            return
        for _ in range(rng.randrange(4)):
            await self.pause()
            await self._add(name)
        await self.pause()
        if rng.random() < 0.9:
            await self._front.ask_about_batch("POST", f"{name}/{rng.choice(('close', 'close', 'abandon'))}")
            await self._add(name)

    async def _add(self, name: str) -> None:
        queues = [self._rng.choice(QUEUES) for _ in range(self._rng.randrange(1, 4))]
        messages = [{"queue": queue, "message": self._message(queue)} for queue in queues]
        newest = self._books.sending()
        answer = await self._front.ask_about_batch("POST", f"{name}/messages", {"messages": messages})
        if answer is None:
            return
        contents = [each["message"]["content"] for each in messages]
        if answer.nothing_happened:
            for content in contents:
                self._books.refused(content)
        elif answer.ok:
            for content, result in zip(contents, answer.body["results"], strict=True):
                self._books.sent_in_batch(content, newest, result)

    # Consumers

    async def consume(self) -> None:
        for _ in range(self._rng.randrange(1, 6)):
            await self.pause()
            queue = self._rng.choice((*QUEUES, *QUEUES, *DEAD_LETTER_QUEUES))
            for message in await self._receive(queue):
                if self._rng.random() < 0.7:
                    await self.pause()
                if "key" in message and self._rng.random() < 0.4:
                    await self._offer(queue, quote(message["key"], safe=""))
                await self._settle(queue, message)

    async def _receive(self, queue: str) -> list[dict[str, Any]]:
        rng, path = self._rng, f"/{queue}/messages"
        shuffle = rng.random() < 0.15
        if rng.random() < 0.4:
            query = "order=shuffle" if shuffle else ""
            answer = await self._front.ask("GET", path, query=query, wait_ms=WAIT_MS_MAX)
            messages = [answer.body] if answer is not None and answer.status == 200 else []
        else:
            wanted: dict[str, Any] = {"max": rng.choice((1, 1, 2, 10)), "waitMs": rng.choice(WAITS_MS)}
            if rng.random() < 0.7:
                wanted["leaseMs"] = rng.choice(LEASES_MS)
            if shuffle:
                wanted["order"] = "shuffle"
            answer = await self._front.ask("POST", f"{path}/receive", wanted, wait_ms=wanted["waitMs"])
            messages = answer.body["messages"] if answer is not None and answer.status == 200 else []
        self._books.received(messages)
        return messages

    async def _settle(self, queue: str, message: dict[str, Any]) -> None:
        how = self._rng.choice(self._habits)
        if how == "hang":
            return
        if how == "one":
            await self._settle_by_id(queue, message)
            return
        receipts = [message["receipt"]]
        if how == "cancelled":  # by somebody else, whose request and the ack may be in one batch
            await self._front.ask("POST", f"/{queue}/messages/{message['id']}/cancel")
            how = "ack"
        if how == "stale":
            receipts += (
                self._rng.sample(self._books.stale_receipts(), 1) if self._books.stale_receipts() else []
            )
            how = self._rng.choice(("ack", "nack", "extend", "release", "sqs"))
        if how == "sqs":
            await self._settle_as_sqs(queue, receipts)
        else:
            await self._settle_receipts(queue, how, receipts)

    async def _settle_as_sqs(self, queue: str, receipts: list[str]) -> None:
        """SQS takes the receipts of any claim, in a FIFO queue those of the latest one while its lease lasts."""
        entries: list[dict[str, Any]] = [
            {"Id": str(place), "ReceiptHandle": receipt} for place, receipt in enumerate(receipts)
        ]
        if self._rng.random() < 0.5:
            await self._front.ask_sqs("DeleteMessageBatch", {"QueueUrl": queue, "Entries": entries})
            return
        seconds = self._rng.choice(VISIBILITY_SECONDS)
        wanted = [{**entry, "VisibilityTimeout": seconds} for entry in entries]
        await self._front.ask_sqs("ChangeMessageVisibilityBatch", {"QueueUrl": queue, "Entries": wanted})

    async def _settle_receipts(self, queue: str, how: str, receipts: list[str]) -> None:
        body: dict[str, Any] = {"receipts": receipts}
        if how == "extend":
            body["leaseMs"] = self._rng.choice(LEASES_MS)
        elif how in ("nack", "release") and self._rng.random() < 0.5:
            body["delayMs"] = self._rng.choice((0, 10))
        answer = await self._front.ask("POST", f"/{queue}/messages/{how}", body)
        if answer is not None and answer.ok and how == "ack":
            for result in answer.body["results"]:
                if result["ok"]:
                    self._books.acked(result["receipt"])

    async def _settle_by_id(self, queue: str, message: dict[str, Any]) -> None:
        """Forq's own ack and nack, mostly with the receipt."""
        how = self._rng.choice(("ack", "ack", "nack"))
        receipt = message["receipt"] if self._rng.random() < 0.7 else ""
        path = f"/{queue}/messages/{message['id']}/{how}"
        answer = await self._front.ask("POST", path, receipt=receipt)
        if answer is not None and answer.ok and how == "ack" and receipt:
            self._books.acked(receipt)

    # Those who only look

    async def look(self) -> None:
        """Peeks, also waiting ones, and statistics: whatever they see, they change nothing."""
        for _ in range(self._rng.randrange(1, 5)):
            await self.pause()
            queue = self._rng.choice((*QUEUES, *DEAD_LETTER_QUEUES))
            match self._rng.randrange(3):
                case 0:
                    await self._front.ask("GET", f"/{queue}")
                case 1:
                    await self._front.ask("GET", f"/{queue}/peek", query="limit=3")
                case _:
                    wanted = {"peek": True, "waitMs": self._rng.choice(WAITS_MS)}
                    path = f"/{queue}/messages/receive"
                    await self._front.ask("POST", path, wanted, wait_ms=wanted["waitMs"])

    # The administrator

    async def set_up(self) -> None:
        """What an administrator does before anybody else comes: often, few attempts are allowed."""
        await self._front.ask("PUT", f"/{ORDERED}/settings", {"groupOrder": "strict"})
        for queue in QUEUES:
            if self._rng.random() < 0.4:
                change = {"maxAttempts": 1, "leaseMs": 1_000} | (
                    self._change() if self._rng.random() < 0.5 else {}
                )
                await self._front.ask("PUT", f"/{queue}/settings", change)

    async def administer(self) -> None:
        for _ in range(self._rng.randrange(1, 7)):
            await self.pause()
            queue = self._rng.choice(QUEUES)
            match self._rng.randrange(15):
                case 0 | 1:
                    await self._front.ask("POST", f"/{queue}/pause")
                    await elapse(self._rng.choice((0.001, 0.1, 2)))
                    await self._front.ask("POST", f"/{queue}/resume")
                case 2 | 3:
                    await self._front.ask("PUT", f"/{queue}/settings", self._change())
                case 4:
                    await self._front.ask("DELETE", f"/{queue}/settings")
                case 5:
                    await self._front.ask("POST", f"/{self._rng.choice(QUEUES + DEAD_LETTER_QUEUES)}/purge")
                case 12 | 13 | 14:
                    await self._work_on_key(queue)
                case 6 | 7 | 8 | 9 | 10:
                    await self._work_on_dead_letters()
                case _:
                    await self._front.ask("DELETE", f"/{queue}")

    def _change(self) -> dict[str, Any]:
        rng = self._rng
        settings = {
            "leaseMs": (5, 1_000, None),
            "delayMs": (0, 100),
            "ttlMs": (1_000, 60_000, None),
            "maxAttempts": (1, 2, None),
            "backOff": ([1, 50], None),
            "deadLetterQueue": ("", "x", None),
            "maxMessages": (1, 2, 5, None),
            "overflow": ("reject", "drop_oldest", "drop_oldest", "dead_letter"),
            "order": ("fifo", "lifo", None),
            "groupInFlightMax": (1, 1, 2, None),
            "groupOrder": ("strict", "strict", "fair", None),
            "inFlightMax": (1, 3, None),
            "rate": ({"count": 2, "periodMs": 50}, {"count": 1, "periodMs": 20, "per": "group"}, None),
        }
        names = rng.sample(list(settings), rng.randrange(1, 4))
        if "overflow" in names or "maxMessages" in names:
            names += ["maxMessages", "overflow"]
        return {name: rng.choice(settings[name]) for name in names}

    async def _work_on_dead_letters(self) -> None:
        rng = self._rng
        known = {row.queue for row in self._books.table.values()}
        queue = rng.choice([queue for queue in DEAD_LETTER_QUEUES if queue in known] or DEAD_LETTER_QUEUES)
        base = f"/{queue}/dead-letters"
        if rng.random() < 0.3:
            wanted = {"ratePerSecond": rng.choice((None, 5)), "target": rng.choice((None, "a"))}
            started = await self._front.ask("POST", f"{base}/redrives", wanted)
            await self.pause()
            if started is not None and started.status == 202 and rng.random() < 0.5:
                await self._front.ask("POST", f"{base}/redrives/{started.body['id']}/cancel")
            return
        found = await self._front.ask("GET", base)
        if found is None or found.status != 200 or not found.body["messages"]:
            return
        ids = [message["id"] for message in found.body["messages"]]
        ids = rng.sample(ids, rng.randrange(1, len(ids) + 1))
        match rng.randrange(3):
            case 0:
                await self._front.ask(
                    "POST", f"{base}/redrive", {"ids": ids, "target": rng.choice((None, "b"))}
                )
            case 1:
                await self._front.ask("POST", f"{base}/delete", {"ids": ids})
            case _:
                copy = {"content": self._books.next_content(), "remove": rng.random() < 0.5}
                await self._front.ask("POST", f"{base}/{ids[0]}/resubmit", copy)

    # At the end

    async def consume_all(self, queues: list[str]) -> int:
        """Receive and acknowledge what can be had at once; returns how many messages that were."""
        count = 0
        for queue in queues:
            await self._front.ask("POST", f"/{queue}/resume")
            wanted = {"max": 100, "leaseMs": 60_000}
            answer = await self._front.ask("POST", f"/{queue}/messages/receive", wanted)
            messages = _expect(answer).body["messages"]
            self._books.received(messages)
            count += len(messages)
            if messages:
                await self._settle_receipts(queue, "ack", [message["receipt"] for message in messages])
        return count


def _expect(answer: Answer | None) -> Answer:
    assert answer is not None
    assert answer.ok, answer
    return answer
