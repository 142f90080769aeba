"""Fills a server with a believable world, for tests of the admin UI.

Thirty queues of a shop: some fine, some in trouble, with dead letters of several reasons, and with one whose content
comes from an enemy. The same seed makes the same messages; their ids and times are the server's. Everything goes
through the HTTP API, in batches.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from forq_trio import ForqClient, NewSchedule
from forq_trio.client.batches import batches
from forq_trio.model.limits import RECEIVE_BATCH_MAX
from forq_trio.model.messages.new_message import NewMessage
from support.showcase_keys import fill_keys

MINUTE_MS = 60_000
LEASE_MS = 4 * 60 * MINUTE_MS  # longer than any run of the tests
HACKED = "window.hacked = true"
"""What content from an enemy would do if a page ever interpreted it: tests look for `hacked`."""

ENEMIES = (
    f"<script>{HACKED}</script>",
    f'"><img src=x onerror="{HACKED}">',
    f"'; {HACKED}; //",
    f"</textarea></title></script><svg onload='{HACKED}'>",
    f"javascript:{HACKED}",
    "{{ 7 * 7 }} {% raw %} ${7*7} <%= 7*7 %>",
    "<a href='//elsewhere.example' hx-get='/system' hx-trigger='load'>a gift</a>",
    "\u202eright to left\u2066 \u0000-free \u200bhidden",
)
UNAVAILABLE = "Error 503 Service Unavailable: payments.internal did not answer"
TIMEOUT = "timeout after 30 s"
NO_TEMPLATE = "template not found: invoice_de_v3"
NO_ADDRESS = "550 5.1.1 mailbox does not exist"


def order(rng: random.Random) -> str:
    """JSON whose numbers no float can hold."""
    return json.dumps(
        {
            "order": f"A-{rng.randrange(10**6):06}",
            "customer": {
                "id": rng.randrange(2**63, 2**64),
                "name": rng.choice(["Zoë Ångström", "李雷", "Ann O'Hara"]),
            },
            "total": {"amount": rng.randrange(10**21, 10**22), "currency": rng.choice(["EUR", "SEK", "JPY"])},
            "items": [
                {"sku": f"SOFA-{rng.randrange(900):03}", "quantity": rng.randrange(1, 9), "discount": None}
                for _ in range(rng.randrange(1, 4))
            ],
            "express": rng.random() < 0.2,
        },
        ensure_ascii=False,
    ).replace('"discount": null', f'"weight": {rng.randrange(100)}.50, "discount": 1e400')


def mail(rng: random.Random) -> str:
    to = rng.choice(["ann", "bob", "chidi", "dörte", "emre"])
    template = rng.choice(["welcome", "receipt", "password", "newsletter-november"])
    return json.dumps({"to": f"{to}{rng.randrange(10**5)}@example.org", "template": template, "lang": "de"})


def event(rng: random.Random) -> str:
    return json.dumps(
        {"type": rng.choice(["page.viewed", "cart.changed"]), "ts": rng.randrange(10**18, 10**19)}
    )


def rows(rng: random.Random) -> str:
    """Text of several lines."""
    goods = ("sofa", "lamp", "bed")
    lines = [f"{rng.randrange(10**8):08};{rng.choice(goods)};{rng.randrange(99)},90" for _ in range(6)]
    return "\n".join(["article;name;price", *lines, ""])


def line(rng: random.Random) -> str:
    return f"level=info route=/cart/{rng.randrange(10**4)} took={rng.randrange(900)}ms"


def bytes_as_text(rng: random.Random) -> str:
    """What somebody sends who decodes a picture as Latin-1."""
    return "\x89PNG\r\n\x1a\n" + "".join(chr(rng.randrange(256)) for _ in range(400))


def raw_log(rng: random.Random) -> str:
    """Too long to be shown whole."""
    return "\n".join(f"{number:06} {line(rng)} trace={rng.randrange(2**64):016x}" for number in range(3_000))


def enemy(rng: random.Random) -> str:
    attack = rng.choice(ENEMIES)
    return attack if rng.random() < 0.5 else json.dumps({"comment": attack, attack: [attack]})


@dataclass(frozen=True)
class QueuePlan:
    """How a queue shall look.

    failed: waiting for their next attempt, by the reason of the last nack. dead: its dead letters likewise, which
    failed `attempts` times. finished: acked when they had failed once, likewise. groups: how many groups its messages
    belong to. evicted: how many more are sent to the full queue.
    """

    name: str
    content: Callable[[random.Random], str]
    ready: int = 0
    delayed: int = 0
    in_flight: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    dead: Mapping[str, int] = field(default_factory=dict)
    attempts: int = 1
    finished: Mapping[str, int] = field(default_factory=dict)
    groups: int = 0
    evicted: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    paused: bool = False


PLANS = (
    QueuePlan("webhooks.out", event, ready=1_800, delayed=230, dead={UNAVAILABLE: 900, TIMEOUT: 300, "": 60}),
    QueuePlan("orders.charge", order, ready=600, delayed=40, in_flight=64, failed={UNAVAILABLE: 12},
              dead={UNAVAILABLE: 80, "card_declined": 35, TIMEOUT: 12}, attempts=3,
              settings={"lease_ms": LEASE_MS, "max_messages": 100_000}),
    QueuePlan("invoices.render", order, ready=96, delayed=31, in_flight=8, failed={NO_TEMPLATE: 9},
              dead={NO_TEMPLATE: 88}, attempts=2),
    QueuePlan("reports.nightly", line, ready=112, in_flight=40),
    QueuePlan("imports.csv", rows, ready=310, dead={"line 4: price is not a number": 12}, paused=True),
    QueuePlan("emails", mail, ready=127, delayed=140, in_flight=24, failed={TIMEOUT: 3},
              dead={NO_ADDRESS: 61, TIMEOUT: 22}, attempts=2),
    QueuePlan("emails.bulk", mail, ready=190, in_flight=36, groups=6, settings={"group_in_flight_max": 6}),
    QueuePlan("events.ingest", event, ready=900, in_flight=100),
    QueuePlan("video.transcode", line, ready=8, in_flight=4, groups=4, settings={"group_in_flight_max": 1},
              dead={"ffmpeg ended with 137": 9}),
    QueuePlan("thumbnails", bytes_as_text, ready=21, in_flight=4, dead={"not a picture": 5}),
    QueuePlan("logs.raw", raw_log, ready=3),
    QueuePlan("guestbook", enemy, ready=24, delayed=3, in_flight=3, failed={ENEMIES[1]: 2},
              dead={reason: 3 for reason in ENEMIES}, finished={reason: 1 for reason in ENEMIES}),
    QueuePlan("cache.warm_lifo", line, ready=18, in_flight=16),
    QueuePlan("billing.usage", event, ready=3, in_flight=2, dead={TIMEOUT: 4}),
    QueuePlan("audit.log", line, ready=41, in_flight=20),
    QueuePlan("feeds.refresh", line, delayed=320, in_flight=11, dead={"404 Not Found": 19}),
    QueuePlan("fraud.score", order, ready=6, in_flight=31),
    QueuePlan("inventory.reserve", order, ready=12, in_flight=12, dead={"no stock": 7}),
    QueuePlan("inventory.sync", line, delayed=31, in_flight=4),
    QueuePlan("orders.created", order, ready=9, in_flight=18),
    QueuePlan("orders.refund", order, delayed=12, in_flight=1, dead={"card_declined": 3}),
    QueuePlan("push.mobile", mail, ready=31, in_flight=64, dead={"token expired": 14}),
    QueuePlan("search.reindex", line, settings={"max_messages": 10, "overflow": "dead_letter"}, ready=10, evicted=4),
)  # fmt: skip
TOKENS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("ops", ("browse", "redrive"), "*"),
    ("billing", ("produce", "consume"), "billing.*"),
    ("grafana", ("browse",), "*"),
    ("shop-frontend", ("produce",), "orders.*"),
)


SCHEDULES = {
    "reports.daily": NewSchedule(
        queue="reports.nightly",
        content='{"report": "daily", "to": ["finance@acme.example"], "rows_max": 90071992547409931}',
        daily=("08:00",),
        time_zone="Europe/Prague",
        while_pending="skip",
        group="finance",
        attributes={"tenant": "acme"},
    ),
    "gdpr.sweep": NewSchedule(
        queue="exports.gdpr",
        content='{"older_than":"P30D"}',
        cron="0 22 * * 1-5",
        time_zone="America/New_York",
    ),
    "imports.nightly": NewSchedule(queue="imports.csv", content="{}", cron="0 1 * * *", paused=True),
    "search.reindex": NewSchedule(
        queue="search.nightly", content='{"scope":"all"}', every="30min", jitter="30s", missed="skip"
    ),
    "feeds.refresh": NewSchedule(
        queue="feeds.archive", content='{"max_age":"15m"}', every="10s", while_pending="skip"
    ),
    "heartbeat": NewSchedule(queue="monitor.ping", content="{}", every="30s", missed="skip"),
    "enemy": NewSchedule(
        queue="enemy.schedule", content=ENEMIES[0], cron="30 2 * * 7", group=ENEMIES[0][:64]
    ),
}


def fill(url: str, secret: str, seed: int = 1) -> None:
    """Make the world on an empty server."""
    with ForqClient(url, secret) as client:
        for plan in PLANS:
            _fill_queue(client, plan, random.Random(f"{seed} {plan.name}"))
        fill_keys(client, ENEMIES, random.Random(f"{seed} keys"))
        for name, scopes, queues in TOKENS:
            client.create_token(name, scopes, queues)
        for name, schedule in SCHEDULES.items():
            client.save_schedule(name, schedule)
        client.run_schedule("reports.daily")


def _fill_queue(client: ForqClient, plan: QueuePlan, rng: random.Random) -> None:
    make = _Maker(plan, rng)
    if plan.dead:
        client.configure(plan.name, max_attempts=plan.attempts)
        _send(client, plan.name, make.messages(sum(plan.dead.values())))
        _kill(client, plan, rng)
    if plan.settings:
        client.configure(plan.name, **plan.settings)
    if plan.failed:
        client.configure(plan.name, max_attempts=plan.attempts + 1)
        _send(client, plan.name, make.messages(sum(plan.failed.values())))
        for reason, number in plan.failed.items():
            _nack(client, plan.name, _claim(client, plan.name, number), reason, LEASE_MS)
    for reason, number in plan.finished.items():
        _send(client, plan.name, make.messages(number))
        _nack(client, plan.name, _claim(client, plan.name, number), reason, 0)
        client.ack(plan.name, _claim(client, plan.name, number))
    _send(client, plan.name, make.messages(plan.in_flight))
    _claim(client, plan.name, plan.in_flight)
    _send(client, plan.name, make.messages(plan.delayed, delayed=True))
    _send(client, plan.name, make.messages(plan.ready))
    _send(client, plan.name, make.messages(plan.evicted))
    if plan.groups:
        _set_aside(client, plan.name)
    if plan.paused:
        client.pause(plan.name)


class _Maker:
    """Makes the messages of a queue. Its groups take turns."""

    def __init__(self, plan: QueuePlan, rng: random.Random) -> None:
        self._plan = plan
        self._rng = rng
        self._groups = cycle([f"customer-{number}" for number in range(plan.groups)] or [None])

    def messages(self, number: int, *, delayed: bool = False) -> Iterator[NewMessage]:
        for _ in range(number):
            attributes, group = self._extras()
            yield NewMessage(
                self._plan.content(self._rng),
                priority=self._rng.choice([100, 100, 100, 100, 500]),
                delay_ms=self._rng.randrange(10 * MINUTE_MS, 360 * MINUTE_MS) if delayed else None,
                attributes=attributes or None,
                group=group,
            )

    def _extras(self) -> tuple[dict[str, str], str | None]:
        """Attributes and group of a message."""
        rng = self._rng
        if self._plan.content is enemy:
            attack = rng.choice(ENEMIES)
            return {attack[:64]: attack, "note": attack}, attack
        attributes = {"tenant": rng.choice(["acme", "globex"]), "trace": f"{rng.randrange(2**64):016x}"}
        return attributes if rng.random() < 0.6 else {}, next(self._groups)


def _send(client: ForqClient, queue: str, messages: Iterator[NewMessage]) -> None:
    for batch in batches(messages):
        for result in client.produce_many(queue, batch):
            if isinstance(result, Exception):
                raise result


def _claim(client: ForqClient, queue: str, number: int) -> list[str]:
    """The receipts of so many messages, which are there."""
    receipts: list[str] = []
    while len(receipts) < number:
        wanted = min(number - len(receipts), RECEIVE_BATCH_MAX)
        claimed = client.receive(queue, max_messages=wanted, wait_ms=0, lease_ms=LEASE_MS)
        if not claimed:
            raise AssertionError(f"{queue} has {len(receipts)} messages to claim, not {number}")
        receipts += [delivery.receipt for delivery in claimed]
    return receipts


def _set_aside(client: ForqClient, queue: str) -> None:
    """Let a claim come upon the groups that have as many messages in flight as they may: the rest of them is held."""
    if client.receive(queue, wait_ms=0):
        raise AssertionError(f"{queue} has groups that are below their limit")


def _nack(client: ForqClient, queue: str, receipts: list[str], reason: str, delay_ms: int) -> None:
    for result in client.nack(queue, receipts, delay_ms=delay_ms, reason=reason or None):
        if not result.ok:
            raise AssertionError(f"{queue}: a nack was refused: {result}")


def _kill(client: ForqClient, plan: QueuePlan, rng: random.Random) -> None:
    """Let all that is in the queue fail until it is dead; most of them always for the same reason."""
    reasons = [reason for reason, number in plan.dead.items() for _ in range(number)]
    for _ in range(plan.attempts):
        rng.shuffle(reasons)
        receipts = _claim(client, plan.name, len(reasons))
        for reason in plan.dead:
            blamed = [
                receipt for receipt, its_reason in zip(receipts, reasons, strict=True) if its_reason == reason
            ]
            _nack(client, plan.name, blamed, reason, 0)
