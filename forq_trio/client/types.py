"""The parameters and results of clients. Times are milliseconds since the Unix epoch, durations milliseconds.

Most are the types of `forq_trio.wire` under the clients' own names. A type that is derived from one has None or {} for
absent members, and ignores unknown ones. The one exception is `NewMessage`: the server decodes its JSON straight into
the message that the broker stores, which has other names and defaults. A test compares the two.
"""

from typing import Literal, TypedDict

from msgspec import Struct, field

from forq_trio.wire import dead_letters, messages, queues, receipts, tokens


class NewMessage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A message to send. None in a member means the queue's own rule.

    process_after: when it is due (epoch ms); delay_ms: how long from now; at most one of them may be given.
    priority: 0-1,000, higher comes first, 100 by default. ttl_ms: how long it lives from when it is due.
    attributes: up to 10 pairs of text that travel with it. deduplication_id: a second message with the same id
    within `deduplication_window_ms` is not stored, its sender is answered with the first. group: messages of one
    group keep their order, and groups take turns. max_attempts: deliveries before it fails; dead_letter_queue: where
    it goes then, or when it expires ("": it is deleted).
    """

    content: str
    process_after: int | None = None
    delay_ms: int | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    attributes: dict[str, str] | None = None
    deduplication_id: str | None = None
    deduplication_window_ms: int | None = None
    group: str | None = None
    max_attempts: int | None = None
    dead_letter_queue: str | None = None


class MessageOptions(TypedDict, total=False):
    """The members of `NewMessage` besides its content, as keywords of `produce`."""

    process_after: int | None
    delay_ms: int | None
    priority: int | None
    ttl_ms: int | None
    attributes: dict[str, str] | None
    deduplication_id: str | None
    deduplication_window_ms: int | None
    group: str | None
    max_attempts: int | None
    dead_letter_queue: str | None


Produced = messages.Produced
"""A stored message. `sequence` grows strictly in order of arrival and is never used twice.

duplicate: True when the deduplication id was known, and `id` and `sequence` are those of the first message.
"""


class Rejected(Struct, frozen=True):
    """A message of a batch that was not stored. code: the API's, for the reason; message: in words.

    field: the member it is about, as a path ($.priority) into the message; None for none.
    """

    code: str
    field: str | None = None
    message: str | None = None


class Delivery(messages.Delivery, frozen=True, omit_defaults=False):
    """A message leased until `lease_until`. `attempts` counts this delivery; `receipt` settles it.

    first_received_at: when it was delivered for the first time.
    """

    attributes: dict[str, str] = field(default_factory=dict)


class ReceiptResult(receipts.Settled, frozen=True, omit_defaults=False):
    """The result of one receipt. code: why it was refused; lease_until: the new end, after `extend`."""


MessageInfo = messages.MessageView
"""A stored message, read without changing it.

failures: its latest failed attempts. failure_reason, source_queue, source_attempts, dead_lettered_at: of a dead
letter, why it is one, where it came from, after how many attempts and when.
"""

Failure = messages.Failure
"""One failed attempt: its number, when it ended and the reason given, None if there was none."""

QueueInfo = queues.QueueDetail
"""A queue's messages by status, and how many consumers wait for one.

held: messages whose group is at the group limit. bytes: of content and attributes.
oldest_ready_age_ms: None if no message is ready, and in the list of all queues.
"""


class ExponentialBackOff(queues.ExponentialBackOff, frozen=True, forbid_unknown_fields=False):
    """A delay that grows: initial_ms x factor^(attempt - 1), at most max_ms; up to `jitter` (0-1) of it is random."""


BackOff = tuple[int, ...] | ExponentialBackOff
"""Delays by attempt, the last one for all later attempts; or a formula."""


class QueueSettings(
    queues.QueueSettings, frozen=True, kw_only=True, omit_defaults=False, forbid_unknown_fields=False
):
    """What was set for a queue; None where nothing was.

    lease_ms: of receives that name none. delay_ms, ttl_ms, max_attempts, dead_letter_queue ("": none),
    deduplication_window_ms: of messages that have none. back_off: after a failed attempt. max_messages, max_bytes: the
    bounds of the queue; overflow: what a send beyond them does. group_in_flight_max: how many messages of one group may
    be processing at once.
    """

    back_off: BackOff | None = None


class QueueRules(queues.QueueRules, frozen=True, kw_only=True):
    """A queue's settings with the defaults. max_messages, max_bytes, group_in_flight_max: None for no bound."""

    back_off: BackOff


class QueueConfiguration(Struct, frozen=True):
    """`settings` is what was set, `effective` has the defaults filled in."""

    settings: QueueSettings
    effective: QueueRules


class SettingsChange(TypedDict, total=False):
    """The members of a change as keywords of `configure`: an absent one is not changed, None resets to the default.

    overflow: what a send to a full queue does: fail, or evict the oldest ready message of the lowest
    priority. order: which message of a priority comes first, the oldest or the newest.
    """

    lease_ms: int | None
    delay_ms: int | None
    ttl_ms: int | None
    max_attempts: int | None
    back_off: BackOff | None
    dead_letter_queue: str | None
    deduplication_window_ms: int | None
    max_messages: int | None
    max_bytes: int | None
    overflow: Literal["reject", "drop_oldest", "dead_letter"] | None
    order: Literal["fifo", "lifo"] | None
    group_in_flight_max: int | None


DeadLetterFilter = dead_letters.DeadLetterFilter
"""Which dead letters match; None and {} match any.

reason: why it is one, exactly. min_age_ms, max_age_ms: for how long it has been one. attributes: those it must have,
with these values. text: part of its content, exactly.
"""

DeadLetterPage = dead_letters.DeadLetters
"""The dead letters that match, newest first, after reading `searched` of the queue's `total` messages.

next_before: the sequence below which the next page begins; None when the queue was searched to its end.
"""


class MoveResult(dead_letters.MovedMessage, frozen=True, omit_defaults=False):
    """The result of one message. code: why it was refused."""


Resubmitted = dead_letters.Resubmitted
"""The copy that was sent."""

RedriveInfo = dead_letters.RedriveView
"""A redrive task, with its progress.

searched: how many messages were read, of `total` at its start. matched: how many of them match and can be
moved; skipped: how many match and cannot. moved: how many were moved. error: why it failed.
"""

Scope = Literal["produce", "consume", "browse", "redrive", "admin"]
"""What a token allows. admin includes the others."""

CreatedToken = tokens.CreatedToken
"""A new token. token: its text, to be used as a secret; the server does not store it."""

TokenInfo = tokens.TokenView
"""A token without its text. queues: a glob. expires_at, last_used_at: None for never."""
