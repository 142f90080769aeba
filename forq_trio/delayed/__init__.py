"""Typed messages with a key and a time, and recurring ones, over a broker or a client (docs/delayed.md)."""

from forq_trio.delayed.cron import CronConfigHash as CronConfigHash
from forq_trio.delayed.cron import CronDailySchedule as CronDailySchedule
from forq_trio.delayed.cron import CronMessage as CronMessage
from forq_trio.delayed.envelope import AckEnvelope as AckEnvelope
from forq_trio.delayed.envelope import BatchEnvelope as BatchEnvelope
from forq_trio.delayed.envelope import DeliveryType as DeliveryType
from forq_trio.delayed.offers import OfferedMessage as OfferedMessage
from forq_trio.delayed.offers import Scheduled as Scheduled
from forq_trio.delayed.payloads import Serializer as Serializer
from forq_trio.delayed.payloads import UnreadablePayload as UnreadablePayload
from forq_trio.delayed.queue import DelayedQueue as DelayedQueue
from forq_trio.delayed.queue import UnreadMessage as UnreadMessage
from forq_trio.delayed.retry import QueueUnavailable as QueueUnavailable
from forq_trio.delayed.service import CronHandle as CronHandle
from forq_trio.delayed.service import CronService as CronService
