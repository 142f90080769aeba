"""The commands that the writer actor executes. Every command names its outcome: `Command[Outcome]`.

Commands are plain values that have already been validated (the broker does it); the storage engine executes them.
All commands of one batch were sent before any of them was answered, so the engine may execute them in any order.
It does: settings, then sends, then settlements, then moves and removals, then sweeps, then claims.
"""

from enum import Enum
from typing import Generic, TypeVar

from msgspec import Struct

from forq_trio.model.access import SECRET, AccessToken, Key
from forq_trio.model.consumers import Consumer, Settling
from forq_trio.model.errors import ServiceError
from forq_trio.model.messages import Delivery, NewMessage, Produced, Receipt, Status
from forq_trio.model.publishing import Published, Stage, Staged, StagedPart
from forq_trio.model.queue_settings import QueueSettings, SettingsChange
from forq_trio.model.redrives import RedriveStep, RedriveTask
from forq_trio.model.sessions import UiSession

OutcomeT = TypeVar("OutcomeT")


class Command(Struct, Generic[OutcomeT], frozen=True, gc=False):
    """Base of all commands; OutcomeT is what its caller gets back."""


class Produce(Command[Produced], frozen=True, gc=False):
    """Store one message, or fail with QueueFull."""

    queue: str
    message: NewMessage


class ProduceEach(Command[tuple[Produced | ServiceError, ...]], frozen=True, gc=False):
    """Store messages of several queues, each alone: the outcome of a refused one is its error, the others are stored.

    messages_max: a bound on the messages of each queue that has none of its own: beyond it a send is refused with
    QueueFull. None for no other bound than the rules'.
    """

    messages: tuple[tuple[str, NewMessage], ...]
    messages_max: int | None = None


class ProduceMany(Command[tuple[Produced, ...]], frozen=True, gc=False):
    """Store several messages of one queue, all or none (QueueFull); outcomes in the order of the messages."""

    queue: str
    messages: tuple[NewMessage, ...]


class RedrivePolicy(Struct, frozen=True, gc=False):
    """The redrive policy of one claim: a bound on deliveries, and where messages go then (Sasquatch, Dead Letter
    Queue).

    A message that was delivered `max_attempts` times (None: its own `default_max_receives`) is not handed out but moved
    to `dead_letter_queue`. Where that is "", or has `messages_max` messages already (None: no bound), it goes where its
    sender and its queue say: to their dead-letter queue, or it is deleted.
    """

    max_attempts: int | None = None
    dead_letter_queue: str = ""
    messages_max: int | None = None


class Claim(Command[tuple[Delivery, ...]], frozen=True, gc=False):
    """Lease up to `max_messages` ready messages in claim order: priority (higher first), then position.

    lease_ms: None means the queue's. wait_ms: how long the writer parks the claim when no message is ready; 0 answers
    at once with (), except that a claim for which its batch was full waits up to DEFERRED_CLAIM_SECONDS. shuffle:
    random ready messages instead. redrive_policy: None means that only the message's and the queue's own bounds hold.
    """

    queue: str
    max_messages: int
    lease_ms: int | None
    wait_ms: int = 0
    shuffle: bool = False
    redrive_policy: RedrivePolicy | None = None


class Ack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove the messages of these receipts. False for a receipt that is not (or no longer) the current one.

    queue: None takes receipts of any queue. message_id: when given, there is one receipt and it must also belong to
    this message.
    """

    queue: str | None
    receipts: tuple[Receipt, ...]
    message_id: str | None = None


class Nack(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Give the messages back after a failed attempt; they return after a delay, or fail at the last attempt.

    delay_ms: None means the back-off by attempt (1, 5, 15, 30, 60 s). reason: stored as the last error, None for none.
    """

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int | None = None
    reason: str | None = None
    message_id: str | None = None


class AckById(Command[bool], frozen=True, gc=False):
    """Remove a processing message by id alone, without fencing: for clients without receipts (F4).

    token: with it, it is fenced like `Ack`, by the token of the current claim; for receipts of Forq itself, which do
    not say the sequence.
    """

    queue: str
    message_id: str
    token: int | None = None


class NackById(Command[bool], frozen=True, gc=False):
    """Give back a processing message by id, with the back-off by attempt. token: as for `AckById`."""

    queue: str
    message_id: str
    token: int | None = None


class Extend(Command[tuple[int | None, ...]], frozen=True, gc=False):
    """Let the leases end `lease_ms` from now (0: at once, the attempt counted).

    queue: None takes receipts of any queue. Outcome per receipt: the new end of the lease, None for a receipt that is
    not current, or whose lease has ended while as many others of its group are in process as may be.
    """

    queue: str | None
    receipts: tuple[Receipt, ...]
    lease_ms: int


class Release(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Undo the claims: the messages are ready again at their positions (or after delay_ms), the attempt uncounted."""

    queue: str
    receipts: tuple[Receipt, ...]
    delay_ms: int = 0


class SweepKind(Enum):
    """The periodic clean-ups of contract F13. Each is a safety net: the due timer does the same on time."""

    EXPIRED = "expired"
    EXPIRED_DLQ = "expired_dlq"
    FAILED = "failed"
    FAILED_DLQ = "failed_dlq"
    STALE = "stale"


class Removed(Struct, frozen=True, gc=False):
    """How many messages or events a step dealt with, and whether its bound may have left more."""

    count: int
    more: bool


class Sweep(Command[Removed], frozen=True, gc=False):
    """Run one clean-up on at most SWEEP_BATCH_MAX messages."""

    kind: SweepKind


class Configure(Command[QueueSettings], frozen=True, gc=False):
    """Change the settings of a queue; outcome: its settings now. change: None removes all but the pause.

    Fails with InvalidSetting where dead letters would go round in a circle.
    """

    queue: str
    change: SettingsChange | None


class Pause(Command[None], frozen=True, gc=False):
    """Stop delivering the messages of a queue, or (paused False) go on and serve parked receivers. Sends go on."""

    queue: str
    paused: bool


class Purged(Struct, frozen=True, gc=False):
    """One step of a purge. count: how many messages were removed; up_to: of the next `Purge`, None at the end."""

    count: int
    up_to: int | None


class Purge(Command[Purged], frozen=True, gc=False):
    """Remove up to PURGE_BATCH_MAX messages of a queue, in whatever status.

    up_to: only messages with a sequence up to this one; None begins a purge of the messages sent before this batch.
    The outcome has the `up_to` of the next step, so that messages that are sent meanwhile stay.
    """

    queue: str
    up_to: int | None = None


class ForgetQueue(Command[bool], frozen=True, gc=False):
    """Forget an empty queue and its settings. False if it has messages: nothing is changed then."""

    queue: str


class Redrive(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Move messages to `target`, or (None) each to the queue it came from: attempts, due time, TTL and reason reset.

    They keep their id, sequence, position and failures. Outcome per id: False for one that is not in `queue`, is
    processing, or has no queue to go to. Bounds of the target are ignored. step: the progress of the task that asks.
    """

    queue: str
    message_ids: tuple[str, ...]
    target: str | None = None
    step: RedriveStep | None = None


class Delete(Command[tuple[bool, ...]], frozen=True, gc=False):
    """Remove messages for good. Outcome per id: False for one that is not in `queue`, or is processing.

    step: the progress of the task that asks.
    """

    queue: str
    message_ids: tuple[str, ...]
    step: RedriveStep | None = None


class Cancel(Command[Status | None], frozen=True, gc=False):
    """Remove a message that nobody has received: ready, delayed, held, or failed and about to be moved.

    Outcome: its status until now. PROCESSING: it is in flight, and stays. None: it is not in `queue`.
    """

    queue: str
    message_id: str


class Resubmit(Command[Produced | None], frozen=True, gc=False):
    """Send a copy of a message to `target` (None: where it came from), edited, and remove the original if asked.

    content, attributes: None keeps the original's. The copy keeps priority, group, TTL, max_attempts and dead-letter
    queue. Outcome: None if the message is not in `queue`, has no queue to go to, or (with remove) is processing.
    """

    queue: str
    message_id: str
    content: str | None = None
    attributes: dict[str, str] | None = None
    target: str | None = None
    remove: bool = False


class SaveToken(Command[None], frozen=True, gc=False):
    """Store an access token. Fails with TokenExists for a name that is taken, with TooManyTokens past TOKENS_MAX."""

    token: AccessToken


class RevokeToken(Command[bool], frozen=True, gc=False):
    """Remove the token of this name; False if there is none."""

    name: str


class NoteTokenUse(Command[None], frozen=True, gc=False):
    """Store when tokens were last used: epoch ms by name; names of revoked tokens are ignored."""

    used: dict[str, int]


class SaveSession(Command[None], frozen=True, gc=False):
    """Store a session of the admin UI. Those that have expired are removed, and the one that was used longest ago
    where there are SESSIONS_MAX.
    """

    session: UiSession


class EndSessions(Command[int], frozen=True, gc=False):
    """Remove the sessions with these digests; None: all. Outcome: how many there were."""

    digests: tuple[str, ...] | None


class NoteSessionUse(Command[None], frozen=True, gc=False):
    """Store when sessions were last used: epoch ms by digest; those of ended sessions are ignored."""

    used: dict[str, int]


class SaveRedrive(Command[None], frozen=True, gc=False):
    """Store a task over dead letters, in the place of the one of this id if there is one.

    A new one that would be more than REDRIVES_REMEMBERED_MAX takes the place of the one that ended and was stored
    first; it fails with TooManyRedrives if none has ended.
    """

    task: RedriveTask


class ForgetRedrive(Command[bool], frozen=True, gc=False):
    """Forget the task of this id; False if there is none."""

    task_id: str


class StagePage(Command[Staged], frozen=True, gc=False):
    """Store a page of a stage, which lives for STAGE_LIFE_MS from then on.

    A page that is there already is left as it is, and is the outcome. Where the key has STAGES_A_KEY_MAX stages, its
    oldest one without messages ends. Fails with StagingFull.
    """

    queue: str
    stage: str
    page: int
    parts: tuple[StagedPart, ...]
    key: Key = SECRET


class Publish(Command[Published], frozen=True, gc=False):
    """Publish these stages in this order, all or none: from then on the batches move their messages into the queues.

    Nothing happens if the app published this version, or a later one, before. The app is that of its name which wrote
    one of these queues, or was made by this key; its queues are from then on those and these. Fails with AppInUse (the
    rules are in storage/apps.py), with StageMissing for a stage that has not exactly its pages, with QueueFull, by what
    is in the queues now and on its way to them, and TooManyApps. once: the app's name is used for one job only, and
    soon forgotten.
    """

    app: str
    version: int
    stages: tuple[Stage, ...]
    once: bool = False
    key: Key = SECRET


class ForgetApp(Command[bool], frozen=True, gc=False):
    """Forget what the apps of this name published whose queues the key all covers; False if there is none."""

    app: str
    key: Key = SECRET


class DiscardStage(Command[bool], frozen=True, gc=False):
    """End a stage: the next batches remove its pages. False if there is none of this name."""

    queue: str
    stage: str


class EndStages(Command[int], frozen=True, gc=False):
    """End the stages whose life is over, at most STAGES_ENDED_MAX; outcome: how many."""


class PurgeHistory(Command[Purged], frozen=True, gc=False):
    """Remove the oldest finished messages of a queue from the history, as many as one step takes.

    up_to: only those with a history id up to this one; None begins with all that ended before this command. The outcome
    has the `up_to` of the next step.
    """

    queue: str
    up_to: int | None = None


class TrimHistory(Command[Removed], frozen=True, gc=False):
    """Remove the oldest finished messages, as many as `rules.retention_steps` take: those that ended before
    `finished_before` (epoch ms), and those beyond `bytes_max` bytes of content and attributes in all.
    """

    finished_before: int
    bytes_max: int


class OpenConsumer(Command[Consumer], frozen=True, gc=False):
    """Open a consumer, which is made if there is none: its generation grows, and older ones are fenced.

    idle_ms: None for what it had, or the default. key: whose share a new one counts to. Fails with TooManyConsumers.
    """

    queue: str
    name: str
    idle_ms: int | None = None
    key: Key = SECRET


class LeaseMessages(Command[Consumer], frozen=True, gc=False):
    """Make the next page of lease `number`, of up to CONSUMER_STEP_MESSAGES_MAX messages in claim order.

    The lease is complete once it has `max_messages` messages, `max_bytes` bytes of lines, or all that were ready; a
    complete one is left as it is. A lease without messages is not made. Fails with ConsumerNotFound, ConsumerFenced,
    LeaseOutOfOrder, LeaseGone, LeasesFull.
    """

    queue: str
    name: str
    generation: int
    number: int
    max_messages: int
    max_bytes: int


class SettleLease(Command[Consumer], frozen=True, gc=False):
    """Settle the next page of the open lease, and drop some pages that are no longer to be read.

    An acknowledgement is of lease `number`, and may have been made before; to give back what is not the open lease (any
    more) does nothing. What began in one way ends in it. generation: None for whatever it is; a release that begins so
    raises it, which fences whoever has the consumer open. EXPIRE: only if the consumer was not used for as long as it
    may. Fails with ConsumerNotFound, ConsumerFenced, LeaseOutOfOrder, LeaseGone.
    """

    queue: str
    name: str
    generation: int | None
    number: int
    how: Settling


class DropPages(Command[Consumer | None], frozen=True, gc=False):
    """Delete some pages that are no longer to be read; of an idle consumer none is. Outcome: the consumer, or None."""

    queue: str
    name: str


class ForgetConsumer(Command[Consumer | None], frozen=True, gc=False):
    """Delete some pages of a consumer, and with the last of them the consumer, unless it has an open lease.

    generation: the first command has None, which raises it, so that nobody goes on with the consumer; those that follow
    have the raised one, and fail with ConsumerFenced if it was opened again. Outcome: the consumer while it is there,
    None when it is gone.
    """

    queue: str
    name: str
    generation: int | None = None


class NoteConsumerUse(Command[None], frozen=True, gc=False):
    """Store that a consumer is used now; one that is not known is ignored."""

    queue: str
    name: str


class TrimEvents(Command[Removed], frozen=True, gc=False):
    """Remove the oldest lifecycle events, `rules.retention_steps` times EVENTS_TRIMMED_MAX, and never the newest one.

    Those that happened before `before_ms` (epoch ms), and as many as are more than `bytes_max` bytes. Only a beginning
    of the log is removed: it ends at the first event that is to stay.
    """

    before_ms: int
    bytes_max: int


class Compacted(Struct, frozen=True, gc=False):
    """What a step gave back. pages: so many; free_pages: so many the file still has."""

    pages: int
    free_pages: int


class Compact(Command[Compacted], frozen=True, gc=False):
    """Give free pages of the database back to the disk: so many, or fewer, as far as one step goes.

    None for an engine without pages, and for a file that cannot.
    """

    pages: int


class Optimize(Command[None], frozen=True, gc=False):
    """Let the database refresh its statistics (SQLite: PRAGMA optimize)."""


class Ping(Command[None], frozen=True, gc=False):
    """A real operation on the write connection that changes nothing: the health check."""
