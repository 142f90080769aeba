"""The workers of the shop: eight handlers, and what goes wrong in them.

    orders ──▶ payments ──▶ shipping ──▶ emails
       │           └──▶ webhooks: one partner's server is away for four minutes of five, another one's for good
       └──▶ customers.sync: a message for each customer, due when nothing more of him comes
    every minute ──▶ reports            every half minute ──▶ imports: paused, so that the schedule skips

A handler decides by the number of its order, the attempt, and for how long the shop has been open. So a shop with the
same seed has the same failures.
"""

from random import Random

import trio

from forq_trio.broker.broker import Broker
from forq_trio.demo.goods import (
    FIRST_CUSTOMER,
    CustomerChange,
    Letter,
    PartnerNotice,
    SalesReport,
    ShopOrder,
    StockRow,
    a_notice,
    chance,
)
from forq_trio.worker import DeadLetter, Job, Worker

DRAIN_SECONDS = 3.0
"""More than enough: what runs does not wait once the shop closes."""
QUIET_SECONDS = 15.0
LATEST_MS = 120_000
OLD_CUSTOMERS = 3
"""So many customers have so much data that the next change comes while they are synchronised."""
THANKS_SECONDS = 900.0
FIELDS = ("email", "address", "phone", "newsletter")
CARD_DECLINED, BANK_AWAY, PARTNER_AWAY, NO_MAILBOX, UNSHIPPED = 0.04, 0.10, 0.90, 0.03, 0.02
"""The share of attempts that fail."""
PARTNER_STUMBLES = 0.10
PARTNER_CYCLE_SECONDS, PARTNER_BACK_SECONDS = 300.0, 60.0
"""For so long of each cycle nobody is away, so that dead letters that are sent again may arrive."""
PARTNER_SHARE = 0.30
"""The share of orders that a partner hears of."""


class BankAway(Exception):
    """The bank did not answer in time."""


class PartnerAway(Exception):
    """The server of a partner answered with a failure."""


class Shop:
    """front: the worker for orders; office: the one for the rest. closing: set when work has to end at once."""

    def __init__(self, broker: Broker, seed: int) -> None:
        self._seed = seed
        self._opened = trio.current_time()
        self.closing = trio.Event()
        self.front = Worker(broker, name="shop-1", version="4.2.0", drain_seconds=DRAIN_SECONDS)
        self.office = Worker(broker, name="office-1", version="1.8.3", drain_seconds=DRAIN_SECONDS)
        self.front.on("orders", concurrency=4)(self.take_order)
        self.front.on("payments", concurrency=4, retry=[2, 10])(self.charge)
        self.front.on("shipping", concurrency=3, retry=[5, 20])(self.ship)
        self.office.on("emails", concurrency=4)(self.send_mail)
        self.office.on("webhooks", concurrency=4, retry=[3, 10])(self.tell_partner)
        self.office.on("customers.sync", concurrency=4)(self.sync_customer)
        self.office.on("reports", concurrency=1)(self.report)
        self.office.on("imports", concurrency=2)(self.import_row)

    def _happens(self, share: float, *what: object) -> bool:
        return chance(self._seed, *what) < share

    async def _work(self, least: float, most: float, *what: object) -> None:
        """Take a time between these, in seconds, or less if the shop closes."""
        with trio.move_on_after(least + (most - least) * chance(self._seed, "time", *what)):
            await self.closing.wait()

    async def take_order(self, order: ShopOrder, job: Job) -> None:
        """Have it paid, and the customer synchronised: later, in one go with what else he does until then."""
        await self._work(0.1, 0.4, "take", order.number)
        await self.front.send(
            "payments", order, group=f"customer-{order.customer}", attributes=job.attributes
        )
        field = FIELDS[int(chance(self._seed, "field", order.number) * len(FIELDS))]
        await self.front.send(
            "customers.sync",
            CustomerChange(order.customer, [field]),
            key=f"customer/{order.customer}",
            mode="debounce",
            delay=QUIET_SECONDS,
            max_wait=LATEST_MS / 1_000,
        )

    async def charge(self, order: ShopOrder, job: Job) -> None:
        """Take the money. A declined card is final, a bank that does not answer is asked again."""
        await self._work(0.2, 0.8, "charge", order.number, job.attempt)
        if self._happens(CARD_DECLINED, "card", order.number):
            raise DeadLetter("card_declined: the bank refuses this card")
        if self._happens(BANK_AWAY, "bank", order.number, job.attempt):
            raise BankAway("no answer within 2 s")
        await self.front.send("shipping", order, attributes=job.attributes)
        receipt = Letter(_address(order), "receipt", order.number)
        await self.front.send("emails", receipt, attributes=job.attributes)
        if self._happens(PARTNER_SHARE, "partner", order.number):
            notice = a_notice(Random(f"{self._seed} {order.number}"), order.number)
            await self.front.send("webhooks", notice, attributes=job.attributes)

    async def ship(self, order: ShopOrder, job: Job) -> None:
        """Pack it, tell the customer, and ask some time later how he likes it."""
        await self._work(0.4, 1.5, "ship", order.number)
        if self._happens(UNSHIPPED, "stock", order.number, job.attempt):
            raise LookupError(f"no {order.item} in stock")
        for template, delay in (("shipped", None), ("how-was-it", THANKS_SECONDS)):
            letter = Letter(_address(order), template, order.number)
            await self.front.send("emails", letter, delay=delay, attributes=job.attributes)

    async def send_mail(self, letter: Letter) -> None:
        await self._work(0.05, 0.2, letter.template, letter.order)
        if self._happens(NO_MAILBOX, "mailbox", letter.template, letter.order):
            raise DeadLetter("550 5.1.1 mailbox does not exist")

    async def tell_partner(self, notice: PartnerNotice, job: Job) -> None:
        """Stands for a post to the server of a partner. Three attempts, then it is a dead letter."""
        await self._work(0.1, 0.6, "post", notice.order, job.attempt)
        if notice.partner == "xylo":
            raise DeadLetter("status 410: this hook was removed")
        share = PARTNER_AWAY if notice.partner == "victor" and self._victor_is_away() else PARTNER_STUMBLES
        if self._happens(share, "post", notice.order, job.attempt):
            raise PartnerAway("status 503: upstream is away")

    def _victor_is_away(self) -> bool:
        seconds = (trio.current_time() - self._opened) % PARTNER_CYCLE_SECONDS
        return seconds < PARTNER_CYCLE_SECONDS - PARTNER_BACK_SECONDS

    async def sync_customer(self, change: CustomerChange) -> None:
        if change.customer < FIRST_CUSTOMER + OLD_CUSTOMERS:
            await self._work(30, 60, "sync", change.customer)
        else:
            await self._work(0.1, 0.5, "sync", change.customer)

    async def report(self, wanted: SalesReport) -> None:
        await self._work(0.5, 1.0, wanted.report)

    async def import_row(self, row: StockRow) -> None:
        await self._work(0.2, 0.4, row.article)


def _address(order: ShopOrder) -> str:
    return f"customer-{order.customer}@shop.example"
