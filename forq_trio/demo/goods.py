"""What the messages of the shop say. The same seed makes the same orders, and decides the same of each."""

from random import Random

from msgspec import Struct, json

CUSTOMERS = ("Ada", "Björn", "Chidi", "Dörte", "Emre", "Fatima", "Goran", "Hana", "李雷", "Zoë")
ITEMS = {"armchair": 24_900, "bookshelf": 12_900, "desk lamp": 3_490, "sofa": 89_900, "rug": 7_990}
"""Prices in cents."""
PARTNERS = {"tango": 0.37, "victor": 0.62, "xylo": 0.01}
"""Whose servers are told of an order, and of which share of the notices."""
FIRST_CUSTOMER = 1_001


class ShopOrder(Struct):
    """What a customer wants."""

    number: str
    customer: int
    name: str
    item: str
    quantity: int
    total_cents: int


class Letter(Struct):
    """A mail to a customer."""

    to: str
    template: str
    order: str


class PartnerNotice(Struct):
    """What the server of a partner is told."""

    partner: str
    event: str
    order: str


class CustomerChange(Struct):
    """A customer's data have changed, and other systems want to know."""

    customer: int
    fields: list[str]


class StockRow(Struct):
    """A row of a supplier's file."""

    article: str
    name: str
    price_cents: int


class SalesReport(Struct):
    """Asks for the figures of a time."""

    report: str
    minutes: int


def chance(seed: int, *what: object) -> float:
    """A number from 0 to 1 that depends on nothing else: not on the time, nor on which worker comes first."""
    return Random(f"{seed} {what}").random()


def an_order(rng: Random, number: int) -> ShopOrder:
    """Some customers order much more often than others, so their data change again and again."""
    customer = FIRST_CUSTOMER + int(rng.expovariate(0.25))
    item, quantity = rng.choice(list(ITEMS)), rng.choice((1, 1, 1, 2, 4))
    return ShopOrder(
        f"A-{number:05}",
        customer,
        CUSTOMERS[customer % len(CUSTOMERS)],
        item,
        quantity,
        ITEMS[item] * quantity,
    )


def a_notice(rng: Random, order: str) -> PartnerNotice:
    (partner,) = rng.choices(list(PARTNERS), list(PARTNERS.values()))
    return PartnerNotice(partner, "order.paid", order)


def a_row(rng: Random, number: int) -> StockRow:
    name = rng.choice(list(ITEMS))
    return StockRow(f"SKU-{number:04}", name, ITEMS[name] + rng.randrange(-500, 500))


def trace(rng: Random) -> dict[str, str]:
    """The attributes of a message."""
    return {"channel": rng.choice(("web", "web", "app")), "trace": f"{rng.randrange(2**64):016x}"}


def content_of(value: Struct) -> str:
    """A message's content."""
    return json.encode(value).decode()
