"""The part of the showcase that has messages with a key: customers to be synchronised, and keys from an enemy."""

import json
import random
from collections.abc import Iterator, Sequence

from forq_trio import ForqClient
from forq_trio.model.keys.types import Mode, Offering
from forq_trio.model.limits import OFFER_BATCH_MAX

CUSTOMERS = "customers.sync"
ENEMY = "guestbook.keys"
KIND = "sync"
HOUR_MS = 3_600_000
LEASE_MS = 4 * 3_600_000  # longer than any run of the tests
FIELDS = ("email", "plan", "address", "phone", "billing_address")


def content(rng: random.Random, customer: int) -> str:
    return json.dumps({"customer": customer, "fields": rng.sample(FIELDS, rng.randrange(1, 3))})


def waiting(rng: random.Random) -> Iterator[Offering]:
    """Messages that wait for long, in each way."""
    ways: tuple[tuple[Mode, int, int], ...] = (
        ("create", 1, 6 * HOUR_MS),
        ("debounce", 3, HOUR_MS),
        ("createOrUpdate", 6, 20 * HOUR_MS),
        ("createIfAbsent", 40, 2 * HOUR_MS),
        ("onceMore", 1, 72 * HOUR_MS),
    )
    for customer in range(4_100, 4_180):
        mode, offers, delay_ms = ways[customer % len(ways)]
        key = f"customer/{customer}" + ("/retry-unless-newer" if mode == "createOrUpdate" else "")
        delay_ms += 60_000 * rng.randrange(600)
        for _ in range(offers):
            yield Offering(content(rng, customer), mode, key=key, kind=KIND, delay_ms=delay_ms)


def fill_keys(client: ForqClient, enemies: Sequence[str], rng: random.Random) -> None:
    """Make these queues. Behind two messages in flight something waits."""
    client.configure(CUSTOMERS, order="due", lease_ms=LEASE_MS)
    for queue, keys in ((CUSTOMERS, ["customer/4121", "customer/4122"]), (ENEMY, enemies[:2])):
        for key in keys:
            client.offer(queue, key, '{"customer": 4121, "fields": ["email"]}', kind=KIND)
        client.receive(queue, max_messages=len(keys), wait_ms=0, lease_ms=LEASE_MS)
        for key in keys:
            more = json.dumps({"customer": 4121, "fields": ["email", "billing_address"], "note": key})
            client.offer(queue, key, more, kind=KIND, mode="onceMore", delay_ms=HOUR_MS)
    _offer(
        client,
        CUSTOMERS,
        [each for each in waiting(rng) if each.key not in ("customer/4121", "customer/4122")],
    )
    keys = [each.replace("\0", "") for each in enemies]  # NUL is what no key has
    _offer(client, ENEMY, [Offering(each, key=each, kind=each[:100], delay_ms=HOUR_MS) for each in keys])


def _offer(client: ForqClient, queue: str, offerings: Sequence[Offering]) -> None:
    for start in range(0, len(offerings), OFFER_BATCH_MAX):
        for result in client.offer_many(queue, offerings[start : start + OFFER_BATCH_MAX]):
            if isinstance(result, Exception):
                raise result
