"""forq-trio: a durable, instant, self-hosted message queue on one writer actor.

The names below are the ones to use from programs: `open_broker` runs the queue inside an application on trio,
`ForqClient` and `AsyncForqClient` reach a server. All three have the same methods, results and errors
(docs/python.md). `forq serve` is the server.

A name is imported when it is first used, so that a program loads only what it needs: what `pip install forq-trio`
brings is enough for the clients. ImportError names the extra that another name needs.
"""

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
    from forq_trio.model.access import Key as Key
    from forq_trio.model.access import Scope as Scope
    from forq_trio.model.clock import Clock as Clock
    from forq_trio.model.commands import RedrivePolicy as RedrivePolicy
    from forq_trio.model.errors import AppInUse as AppInUse
    from forq_trio.model.errors import BackupImpossible as BackupImpossible
    from forq_trio.model.errors import BackupRunning as BackupRunning
    from forq_trio.model.errors import CallerError as CallerError
    from forq_trio.model.errors import ClientClosed as ClientClosed
    from forq_trio.model.errors import CommandRefused as CommandRefused
    from forq_trio.model.errors import CompactionImpossible as CompactionImpossible
    from forq_trio.model.errors import ConsumerFenced as ConsumerFenced
    from forq_trio.model.errors import ConsumerNotFound as ConsumerNotFound
    from forq_trio.model.errors import ContentTooLarge as ContentTooLarge
    from forq_trio.model.errors import DeadLettersOnly as DeadLettersOnly
    from forq_trio.model.errors import EventsGone as EventsGone
    from forq_trio.model.errors import EventsOff as EventsOff
    from forq_trio.model.errors import Forbidden as Forbidden
    from forq_trio.model.errors import ForqError as ForqError
    from forq_trio.model.errors import ForqProtocolError as ForqProtocolError
    from forq_trio.model.errors import ForqUnreachable as ForqUnreachable
    from forq_trio.model.errors import HistoryGone as HistoryGone
    from forq_trio.model.errors import HistoryOff as HistoryOff
    from forq_trio.model.errors import InvalidAttributes as InvalidAttributes
    from forq_trio.model.errors import InvalidContent as InvalidContent
    from forq_trio.model.errors import InvalidName as InvalidName
    from forq_trio.model.errors import InvalidQueueName as InvalidQueueName
    from forq_trio.model.errors import InvalidRequest as InvalidRequest
    from forq_trio.model.errors import InvalidSetting as InvalidSetting
    from forq_trio.model.errors import InvalidToken as InvalidToken
    from forq_trio.model.errors import LeaseGone as LeaseGone
    from forq_trio.model.errors import LeaseOutOfOrder as LeaseOutOfOrder
    from forq_trio.model.errors import LeasesFull as LeasesFull
    from forq_trio.model.errors import MalformedMessageId as MalformedMessageId
    from forq_trio.model.errors import MalformedReceipt as MalformedReceipt
    from forq_trio.model.errors import MessageInFlight as MessageInFlight
    from forq_trio.model.errors import MessageNotFound as MessageNotFound
    from forq_trio.model.errors import NotFound as NotFound
    from forq_trio.model.errors import OutcomeUnknown as OutcomeUnknown
    from forq_trio.model.errors import OutOfRange as OutOfRange
    from forq_trio.model.errors import Overloaded as Overloaded
    from forq_trio.model.errors import ProcessAfterInPast as ProcessAfterInPast
    from forq_trio.model.errors import ProcessAfterTooFar as ProcessAfterTooFar
    from forq_trio.model.errors import ProduceToDeadLetterQueue as ProduceToDeadLetterQueue
    from forq_trio.model.errors import PublicationNotFound as PublicationNotFound
    from forq_trio.model.errors import PublicationUnfinished as PublicationUnfinished
    from forq_trio.model.errors import QueueFull as QueueFull
    from forq_trio.model.errors import QueueNotEmpty as QueueNotEmpty
    from forq_trio.model.errors import QueueNotFound as QueueNotFound
    from forq_trio.model.errors import ReadDeadlineExceeded as ReadDeadlineExceeded
    from forq_trio.model.errors import ReceiptNotCurrent as ReceiptNotCurrent
    from forq_trio.model.errors import RedriveNotFound as RedriveNotFound
    from forq_trio.model.errors import RedriveStateConflict as RedriveStateConflict
    from forq_trio.model.errors import ServiceError as ServiceError
    from forq_trio.model.errors import StageMissing as StageMissing
    from forq_trio.model.errors import StagingFull as StagingFull
    from forq_trio.model.errors import Stopping as Stopping
    from forq_trio.model.errors import StorageFull as StorageFull
    from forq_trio.model.errors import StorageLost as StorageLost
    from forq_trio.model.errors import StorageOpenError as StorageOpenError
    from forq_trio.model.errors import StorageUnavailable as StorageUnavailable
    from forq_trio.model.errors import TokenExists as TokenExists
    from forq_trio.model.errors import TokenNotFound as TokenNotFound
    from forq_trio.model.errors import TooManyApps as TooManyApps
    from forq_trio.model.errors import TooManyConsumers as TooManyConsumers
    from forq_trio.model.errors import TooManyRedrives as TooManyRedrives
    from forq_trio.model.errors import TooManyTokens as TooManyTokens
    from forq_trio.model.errors import TooManyWrongKeys as TooManyWrongKeys
    from forq_trio.model.errors import WrongKey as WrongKey
    from forq_trio.model.events import MessageEvent as MessageEvent
    from forq_trio.model.history import FinishedMessage as FinishedMessage
    from forq_trio.model.history import FinishedPage as FinishedPage
    from forq_trio.model.messages import Delivery as Delivery
    from forq_trio.model.messages import Failure as Failure
    from forq_trio.model.messages import MessageInfo as MessageInfo
    from forq_trio.model.messages import MessageOptions as MessageOptions
    from forq_trio.model.messages import NewMessage as NewMessage
    from forq_trio.model.messages import Produced as Produced
    from forq_trio.model.publishing import PublishedVersion as PublishedVersion
    from forq_trio.model.publishing import Stage as Stage
    from forq_trio.model.publishing import Staged as Staged
    from forq_trio.model.queue_settings import BackOff as BackOff
    from forq_trio.model.queue_settings import ExponentialBackOff as ExponentialBackOff
    from forq_trio.model.queue_settings import Order as Order
    from forq_trio.model.queue_settings import Overflow as Overflow
    from forq_trio.model.queue_settings import QueueRules as QueueRules
    from forq_trio.model.queue_settings import QueueSettings as QueueSettings
    from forq_trio.model.queue_settings import SettingsOptions as SettingsOptions
    from forq_trio.model.searches import DeadLetterPage as DeadLetterPage
    from forq_trio.system import open_broker as open_broker
    from forq_trio.wire.compaction import CompactionInfo as CompactionInfo
    from forq_trio.wire.consumers import ConsumerInfo as ConsumerInfo
    from forq_trio.wire.consumers import ConsumerLease as ConsumerLease
    from forq_trio.wire.consumers import LeasePage as LeasePage
    from forq_trio.wire.dead_letters import AppliedFilter as AppliedFilter
    from forq_trio.wire.dead_letters import DeadLetterFilter as DeadLetterFilter
    from forq_trio.wire.dead_letters import MoveResult as MoveResult
    from forq_trio.wire.dead_letters import RedriveInfo as RedriveInfo
    from forq_trio.wire.export import ExportedMessage as ExportedMessage
    from forq_trio.wire.logs import EventPage as EventPage
    from forq_trio.wire.logs import EventRange as EventRange
    from forq_trio.wire.logs import HistoryFilter as HistoryFilter
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
    "model.access": "Key Scope",
    "model.clock": "Clock",
    "model.commands": "RedrivePolicy",
    "model.errors": (
        "BackupImpossible BackupRunning CallerError ClientClosed CommandRefused CompactionImpossible "
        "ConsumerFenced ConsumerNotFound "
        "ContentTooLarge DeadLettersOnly EventsGone EventsOff Forbidden ForqError ForqProtocolError "
        "ForqUnreachable HistoryGone "
        "HistoryOff InvalidAttributes InvalidContent InvalidName InvalidQueueName InvalidRequest InvalidSetting "
        "InvalidToken LeaseGone LeaseOutOfOrder LeasesFull MalformedMessageId MalformedReceipt MessageNotFound "
        "NotFound OutOfRange OutcomeUnknown Overloaded ProcessAfterInPast ProcessAfterTooFar "
        "ProduceToDeadLetterQueue PublicationNotFound QueueFull QueueNotEmpty ReadDeadlineExceeded "
        "QueueNotFound ReceiptNotCurrent RedriveNotFound "
        "RedriveStateConflict ServiceError StageMissing StagingFull Stopping StorageFull StorageLost "
        "StorageOpenError StorageUnavailable TokenExists TokenNotFound TooManyConsumers TooManyRedrives "
        "AppInUse MessageInFlight PublicationUnfinished TooManyApps "
        "TooManyTokens TooManyWrongKeys WrongKey"
    ),
    "model.messages": "Delivery Failure MessageInfo MessageOptions NewMessage Produced",
    "model.publishing": "PublishedVersion Stage Staged",
    "model.queue_settings": (
        "BackOff ExponentialBackOff Order Overflow QueueRules QueueSettings SettingsOptions"
    ),
    "model.searches": "DeadLetterPage",
    "system": "open_broker",
    "wire.compaction": "CompactionInfo",
    "wire.consumers": "ConsumerInfo ConsumerLease LeasePage",
    "wire.dead_letters": "AppliedFilter DeadLetterFilter MoveResult RedriveInfo",
    "wire.export": "ExportedMessage",
    "model.events": "MessageEvent",
    "model.history": "FinishedMessage FinishedPage",
    "wire.logs": "EventPage EventRange HistoryFilter HistoryPage HistoryRange",
    "wire.publishing": "AppPage ExportPage ExportPartitions ExportRange Publication",
    "wire.queues": "QueueConfiguration QueueHealth QueueInfo",
    "wire.receipts": "ManyReceipts ReceiptResult",
    "wire.tokens": "CreatedToken TokenInfo",
}
"""The public names by the module that they come from."""

_EMBEDDED = ("Broker", "open_broker")
"""Those that need the extra `embed`."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(f"{__name__}.model.version").installed_version() or "unknown"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_HOMES[name]}"
    if name not in _EMBEDDED:
        return getattr(import_module(home), name)
    with import_module(f"{__name__}.model.extras").needing("embed", name):
        return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
