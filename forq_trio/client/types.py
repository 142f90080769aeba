"""The parameters and results of clients, which are those of the broker, too.

Times are milliseconds since the Unix epoch, durations milliseconds.
"""

from forq_trio.model.access import Scope as Scope
from forq_trio.model.events import EventKind as EventKind
from forq_trio.model.events import MessageEvent as MessageEvent
from forq_trio.model.history import FinishedMessage as FinishedMessage
from forq_trio.model.history import FinishedPage as FinishedPage
from forq_trio.model.messages import Delivery as Delivery
from forq_trio.model.messages import Failure as Failure
from forq_trio.model.messages import MessageInfo as MessageInfo
from forq_trio.model.messages import MessageOptions as MessageOptions
from forq_trio.model.messages import NewMessage as NewMessage
from forq_trio.model.messages import Produced as Produced
from forq_trio.model.queue_settings import BackOff as BackOff
from forq_trio.model.queue_settings import ExponentialBackOff as ExponentialBackOff
from forq_trio.model.queue_settings import QueueRules as QueueRules
from forq_trio.model.queue_settings import QueueSettings as QueueSettings
from forq_trio.model.queue_settings import Rate as Rate
from forq_trio.model.queue_settings import RatePer as RatePer
from forq_trio.model.queue_settings import SettingsOptions as SettingsOptions
from forq_trio.model.redrives import RedriveInfo as RedriveInfo
from forq_trio.model.searches import AppliedFilter as AppliedFilter
from forq_trio.model.searches import DeadLetterPage as DeadLetterPage
from forq_trio.wire.compaction import CompactionInfo as CompactionInfo
from forq_trio.wire.consumers import ConsumerInfo as ConsumerInfo
from forq_trio.wire.consumers import ConsumerLease as ConsumerLease
from forq_trio.wire.consumers import LeasePage as LeasePage
from forq_trio.wire.dead_letters import DeadLetterFilter as DeadLetterFilter
from forq_trio.wire.dead_letters import MoveResult as MoveResult
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
from forq_trio.wire.publishing import PublishedVersion as PublishedVersion
from forq_trio.wire.publishing import Stage as Stage
from forq_trio.wire.publishing import Staged as Staged
from forq_trio.wire.queues import QueueConfiguration as QueueConfiguration
from forq_trio.wire.queues import QueueHealth as QueueHealth
from forq_trio.wire.queues import QueueInfo as QueueInfo
from forq_trio.wire.receipts import ReceiptResult as ReceiptResult
from forq_trio.wire.tokens import CreatedToken as CreatedToken
from forq_trio.wire.tokens import TokenInfo as TokenInfo
