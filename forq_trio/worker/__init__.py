"""Workers: functions that run on the messages of queues, over a server or an embedded broker (docs/workers.md)."""

from forq_trio.worker.app import Worker as Worker
from forq_trio.worker.handlers import CallNext as CallNext
from forq_trio.worker.handlers import Handler as Handler
from forq_trio.worker.handlers import WorkerSetupError as WorkerSetupError
from forq_trio.worker.jobs import Job as Job
from forq_trio.worker.loop import QueueStats as QueueStats
from forq_trio.worker.message_batches import BatchSender as BatchSender
from forq_trio.worker.outcomes import DeadLetter as DeadLetter
from forq_trio.worker.outcomes import Discard as Discard
from forq_trio.worker.outcomes import LeaseLost as LeaseLost
from forq_trio.worker.outcomes import Retry as Retry
from forq_trio.worker.outcomes import UnreadableContent as UnreadableContent
from forq_trio.worker.result_codec import JobFailed as JobFailed
from forq_trio.worker.result_codec import ResultGone as ResultGone
from forq_trio.worker.retries import Backoff as Backoff
from forq_trio.worker.router import Router as Router
from forq_trio.worker.testing import WorkerTest as WorkerTest
