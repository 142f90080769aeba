"""Work in the world of the showcase, so that its charts and verdicts have something to say: who sends how much to which
queue, and what its consumers do. `python -m support.showcase_trade URL SECRET` goes on until it is interrupted.
"""

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import trio

from forq_trio import AsyncForqClient
from forq_trio.model.errors import ForqError
from support.showcase import MINUTE_MS, NO_TEMPLATE, PLANS, UNAVAILABLE, fill
from support.showcase_keys import CUSTOMERS, change
from support.showcase_workers import make_known

WAIT_MS = 5_000
WATCHED_SECONDS = 25
"""After so long the server has looked at every queue: from then on it knows since when one is paused."""


@dataclass(frozen=True)
class Trade:
    """sent: messages a second. consumers: each takes `batch` at a time and works for `seconds` on them. nacked: which
    part of the messages, for `reason`; held: they are neither acked nor nacked. Full queues refuse, and no one minds.
    """

    queue: str
    sent: float = 0.0
    consumers: int = 1
    batch: int = 5
    seconds: float = 0.1
    nacked: float = 0.0
    reason: str = UNAVAILABLE
    held: float = 0.0
    lease_ms: int | None = None


TROUBLED = (
    Trade("webhooks.out", sent=0.5, consumers=0),  # backlog and no consumers
    Trade("fraud.score", sent=0.3, batch=1, held=1.0, lease_ms=20 * MINUTE_MS),  # nothing acked
    Trade("invoices.render", sent=4, nacked=0.97, reason=NO_TEMPLATE),  # all nacks alike
    Trade("orders.charge", sent=4, consumers=12, batch=4, seconds=9, nacked=0.03),  # slower than the lease
    Trade("events.ingest", sent=24, seconds=0.7),  # falls behind
    Trade("thumbnails", sent=2, batch=2, seconds=0.6),  # drains
)
BUSY = (
    Trade(CUSTOMERS, consumers=4, batch=10, seconds=1.5),
    Trade("emails", sent=12, consumers=2, nacked=0.02),
    Trade("emails.bulk", sent=2, consumers=2),
    Trade("push.mobile", sent=18, consumers=3),
    Trade("audit.log", sent=25, consumers=2),
    Trade("orders.created", sent=8, consumers=3),
    Trade("imports.csv", sent=0.2, batch=1, seconds=4),  # paused
    Trade("search.reindex", sent=0.5, consumers=1, batch=1),
)


def trades() -> list[Trade]:
    """One for every queue of the showcase: who is not named above has a little work and a consumer."""
    named = {trade.queue for trade in (*TROUBLED, *BUSY)}
    return [*TROUBLED, *BUSY, *(Trade(plan.name, sent=0.3) for plan in PLANS if plan.name not in named)]


async def _work(seconds: float, stop: trio.Event) -> None:
    with trio.move_on_after(seconds):
        await stop.wait()


async def _send(client: AsyncForqClient, trade: Trade, rng: random.Random, stop: trio.Event) -> None:
    make = next(plan.content for plan in PLANS if plan.name == trade.queue)
    while True:
        await _work(rng.expovariate(trade.sent), stop)
        with contextlib.suppress(ForqError):
            await client.produce(trade.queue, make(rng))


async def _offer(client: AsyncForqClient, stop: trio.Event) -> None:
    """Customers change, some of them again and again."""
    rng = random.Random(CUSTOMERS)
    while True:
        await _work(0.1, stop)
        customers = [5_000 + int(rng.expovariate(0.02)) for _ in range(4)]
        for result in await client.offer_many(CUSTOMERS, [change(rng, customer) for customer in customers]):
            if isinstance(result, Exception):
                raise result


async def _consume(client: AsyncForqClient, trade: Trade, rng: random.Random, stop: trio.Event) -> None:
    while True:
        taken = await client.receive(
            trade.queue, max_messages=trade.batch, wait_ms=WAIT_MS, lease_ms=trade.lease_ms
        )
        await _work(trade.seconds * rng.uniform(0.5, 1.5), stop)
        acked, nacked = [], []
        for delivery in taken:
            fate = rng.random()
            if fate >= trade.held + trade.nacked:
                acked.append(delivery.receipt)
            elif fate >= trade.held:
                nacked.append(delivery.receipt)
        if acked:
            await client.ack(trade.queue, acked)
        if nacked:
            await client.nack(trade.queue, nacked, reason=trade.reason)


async def _trade(url: str, secret: str, stop: trio.Event) -> None:
    async with contextlib.AsyncExitStack() as stack, trio.open_nursery() as nursery:
        for trade in trades():
            client = await stack.enter_async_context(AsyncForqClient(url, secret))
            rng = random.Random(trade.queue)
            if trade.sent:
                nursery.start_soon(_send, client, trade, rng, stop)
            for _ in range(trade.consumers):
                nursery.start_soon(_consume, client, trade, rng, stop)
        client = await stack.enter_async_context(AsyncForqClient(url, secret))
        nursery.start_soon(_offer, client, stop)
        nursery.start_soon(make_known, client, stop)
        await client.configure("orders.charge", lease_ms=12_000)
        await client.resume("imports.csv")
        await _work(WATCHED_SECONDS, stop)
        await client.pause("imports.csv")
        await stop.wait()
        nursery.cancel_scope.cancel()


@contextmanager
def trading(url: str, secret: str) -> Iterator[None]:
    """Work for the showcase's queues, in a thread, until the block ends."""
    stop, started = trio.Event(), threading.Event()
    tokens: list[trio.lowlevel.TrioToken] = []
    problems: list[BaseException] = []

    async def run() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        started.set()
        await _trade(url, secret, stop)

    def work() -> None:
        try:
            trio.run(run)
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    try:
        yield
    finally:
        with contextlib.suppress(trio.RunFinishedError):
            tokens[0].run_sync_soon(stop.set)
        thread.join()
    if problems:
        raise problems[0]


if __name__ == "__main__":
    fill(*sys.argv[1:3])
    with trading(*sys.argv[1:3]):
        threading.Event().wait()
