"""forq-trio: a durable, instant, self-hosted message queue on one writer actor.

The names below are the ones to use from programs: `open_broker` runs the queue inside an application on trio or
asyncio, `open_blocking_broker` inside a blocking one, `ForqClient` and `AsyncForqClient` reach a server. All have
the same methods, results and errors (docs/python.md). `forq serve` is the server.

A name is imported when it is first used, so that a program loads only what it needs. The clients need nothing but what
the package installs without an extra; for any other name ImportError says which extra it needs.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from forq_trio.broker.broker import Broker as Broker
    from forq_trio.client.aio import AsyncForqClient as AsyncForqClient
    from forq_trio.client.aio_connection import AsyncTransport as AsyncTransport
    from forq_trio.client.batches import batches as batches
    from forq_trio.client.sync import ForqClient as ForqClient
    from forq_trio.client.sync_connection import Transport as Transport
    from forq_trio.embedded.blocking import BlockingBroker as BlockingBroker
    from forq_trio.embedded.blocking import BrokerOptions as BrokerOptions
    from forq_trio.embedded.blocking import open_blocking_broker as open_blocking_broker
    from forq_trio.model.access import Key as Key
    from forq_trio.model.access import Scope as Scope
    from forq_trio.model.clock import Clock as Clock
    from forq_trio.model.commands import RedrivePolicy as RedrivePolicy
    from forq_trio.model.errors import *  # noqa: F403  each error is public
    from forq_trio.model.events import MessageEvent as MessageEvent
    from forq_trio.model.history import FinishedMessage as FinishedMessage
    from forq_trio.model.history import FinishedPage as FinishedPage
    from forq_trio.model.keys import KeyInfo as KeyInfo
    from forq_trio.model.keys import Offered as Offered
    from forq_trio.model.keys import Offering as Offering
    from forq_trio.model.keys import OfferOptions as OfferOptions
    from forq_trio.model.keys import OnceMore as OnceMore
    from forq_trio.model.messages import Delivery as Delivery
    from forq_trio.model.messages import Failure as Failure
    from forq_trio.model.messages import KeyedMessage as KeyedMessage
    from forq_trio.model.messages import KeyPage as KeyPage
    from forq_trio.model.messages import MessageInfo as MessageInfo
    from forq_trio.model.messages import MessageOptions as MessageOptions
    from forq_trio.model.messages import NewMessage as NewMessage
    from forq_trio.model.messages import Produced as Produced
    from forq_trio.model.outboxes import OutboxPosition as OutboxPosition
    from forq_trio.model.outboxes import OutboxRefusal as OutboxRefusal
    from forq_trio.model.outboxes import RelayedMessage as RelayedMessage
    from forq_trio.model.processes import JobRun as JobRun
    from forq_trio.model.processes import ProcessInfo as ProcessInfo
    from forq_trio.model.publishing import PublishedVersion as PublishedVersion
    from forq_trio.model.publishing import Stage as Stage
    from forq_trio.model.publishing import Staged as Staged
    from forq_trio.model.queue_settings import BackOff as BackOff
    from forq_trio.model.queue_settings import ExponentialBackOff as ExponentialBackOff
    from forq_trio.model.queue_settings import Order as Order
    from forq_trio.model.queue_settings import Overflow as Overflow
    from forq_trio.model.queue_settings import QueueRules as QueueRules
    from forq_trio.model.queue_settings import QueueSettings as QueueSettings
    from forq_trio.model.queue_settings import QueueTable as QueueTable
    from forq_trio.model.queue_settings import Rate as Rate
    from forq_trio.model.queue_settings import RatePer as RatePer
    from forq_trio.model.queue_settings import SettingsOptions as SettingsOptions
    from forq_trio.model.redrives import ChangedRedrive as ChangedRedrive
    from forq_trio.model.redrives import RedriveInfo as RedriveInfo
    from forq_trio.model.schedule_errors import CronPlace as CronPlace
    from forq_trio.model.schedules import ChangedSchedule as ChangedSchedule
    from forq_trio.model.schedules import NewSchedule as NewSchedule
    from forq_trio.model.schedules import NextRun as NextRun
    from forq_trio.model.schedules import SavedRun as SavedRun
    from forq_trio.model.schedules import Schedule as Schedule
    from forq_trio.model.schedules import ScheduleDetails as ScheduleDetails
    from forq_trio.model.schedules import SchedulePage as SchedulePage
    from forq_trio.model.schedules import Timing as Timing
    from forq_trio.model.searches import AppliedFilter as AppliedFilter
    from forq_trio.model.searches import DeadLetterPage as DeadLetterPage
    from forq_trio.model.set_aside import SetAside as SetAside
    from forq_trio.model.where import NotEqual as NotEqual
    from forq_trio.model.workers import HeldMessage as HeldMessage
    from forq_trio.model.workers import WorkerInfo as WorkerInfo
    from forq_trio.model.workers import WorkerQueue as WorkerQueue
    from forq_trio.model.workers import WorkerReport as WorkerReport
    from forq_trio.system import open_broker as open_broker
    from forq_trio.wire.compaction import CompactionInfo as CompactionInfo
    from forq_trio.wire.consumers import ConsumerInfo as ConsumerInfo
    from forq_trio.wire.consumers import ConsumerLease as ConsumerLease
    from forq_trio.wire.consumers import LeasePage as LeasePage
    from forq_trio.wire.consumers import LeaseTime as LeaseTime
    from forq_trio.wire.dead_letters import DeadLetterFilter as DeadLetterFilter
    from forq_trio.wire.dead_letters import MoveResult as MoveResult
    from forq_trio.wire.export import ExportedMessage as ExportedMessage
    from forq_trio.wire.history import HistoryFilter as HistoryFilter
    from forq_trio.wire.logs import EventPage as EventPage
    from forq_trio.wire.logs import EventRange as EventRange
    from forq_trio.wire.logs import HistoryPage as HistoryPage
    from forq_trio.wire.logs import HistoryRange as HistoryRange
    from forq_trio.wire.publishing import AppPage as AppPage
    from forq_trio.wire.publishing import ExportPage as ExportPage
    from forq_trio.wire.publishing import ExportPartitions as ExportPartitions
    from forq_trio.wire.publishing import ExportRange as ExportRange
    from forq_trio.wire.publishing import Publication as Publication
    from forq_trio.wire.queues import QueueConfiguration as QueueConfiguration
    from forq_trio.wire.queues import QueueHealth as QueueHealth
    from forq_trio.wire.queues import QueueInfo as QueueInfo
    from forq_trio.wire.receipts import ManyReceipts as ManyReceipts
    from forq_trio.wire.receipts import ReceiptResult as ReceiptResult
    from forq_trio.wire.tokens import CreatedToken as CreatedToken
    from forq_trio.wire.tokens import TokenInfo as TokenInfo

_NAMES = {
    "broker.broker": "Broker",
    "client.aio": "AsyncForqClient",
    "client.aio_connection": "AsyncTransport",
    "client.batches": "batches",
    "client.sync": "ForqClient",
    "client.sync_connection": "Transport",
    "embedded.blocking": "BlockingBroker BrokerOptions open_blocking_broker",
    "model.access": "Key Scope",
    "model.clock": "Clock",
    "model.commands": "RedrivePolicy",
    "model.keys": "KeyInfo OfferOptions Offered Offering OnceMore",
    "model.messages": "Delivery Failure KeyPage KeyedMessage MessageInfo MessageOptions NewMessage Produced",
    "model.outboxes": "OutboxPosition OutboxRefusal RelayedMessage",
    "model.processes": "JobRun ProcessInfo",
    "model.publishing": "PublishedVersion Stage Staged",
    "model.queue_settings": (
        "BackOff ExponentialBackOff Order Overflow QueueRules QueueSettings QueueTable Rate RatePer SettingsOptions"
    ),
    "model.redrives": "ChangedRedrive RedriveInfo",
    "model.schedule_errors": "CronPlace",
    "model.schedules": (
        "ChangedSchedule NewSchedule NextRun SavedRun Schedule ScheduleDetails SchedulePage Timing"
    ),
    "model.set_aside": "SetAside",
    "model.workers": "HeldMessage WorkerInfo WorkerQueue WorkerReport",
    "model.searches": "AppliedFilter DeadLetterPage",
    "system": "open_broker",
    "wire.compaction": "CompactionInfo",
    "wire.consumers": "ConsumerInfo ConsumerLease LeasePage LeaseTime",
    "wire.dead_letters": "DeadLetterFilter MoveResult",
    "wire.export": "ExportedMessage",
    "model.events": "MessageEvent",
    "model.history": "FinishedMessage FinishedPage",
    "wire.history": "HistoryFilter",
    "wire.logs": "EventPage EventRange HistoryPage HistoryRange",
    "wire.publishing": "AppPage ExportPage ExportPartitions ExportRange Publication",
    "wire.queues": "QueueConfiguration QueueHealth QueueInfo",
    "wire.receipts": "ManyReceipts ReceiptResult",
    "wire.tokens": "CreatedToken TokenInfo",
    "model.where": "NotEqual",
}
"""The public names by the module from which they come, except the errors, all of which are public."""

_EMBEDDED = ("BlockingBroker", "Broker", "BrokerOptions", "open_blocking_broker", "open_broker")
"""The names that need the extra `embed`."""


@cache
def _homes() -> dict[str, str]:
    """The module of each public name."""
    errors = import_module(f"{__name__}.model.errors")
    homes = {name: home for home, names in _NAMES.items() for name in names.split()}
    return homes | dict.fromkeys(errors.names(), "model.errors")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(f"{__name__}.model.version").installed_version() or "unknown"
    if name == "__all__":
        return sorted(_homes())
    if name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_homes()[name]}"
    if name not in _EMBEDDED:
        return getattr(import_module(home), name)
    extras = import_module(f"{__name__}.model.extras")
    extras.check_system(name)
    with extras.needing("embed", name):
        return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
