"""A message to send. Its options are each declared once.

An option is an annotated type (`TtlMs`): its range, default and meaning are in its `Option`, and a member of that type
in `NewMessage`, and one of the same name in `MessageOptions`, make it known. What is valid (`checks`), the errors for
it, the API's document, the options of `forq send` and the table of docs/reference/queues.md follow from `OPTIONS`.
"""

from typing import Annotated, Any, Self, TypedDict, Unpack

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.declared import Declared, ValueKind, documented, members_declared
from forq_trio.model.json_text import dumps


class Option(Declared, frozen=True, kw_only=True):
    """The declaration of an option. default: what happens without the option, in words; "" for nothing."""

    default: str = "the queue's"


Content = Annotated[
    str,
    Meta(
        description="Any text of at most 256 KiB in UTF-8.",
        extra_json_schema={"maxLength": limits.CONTENT_BYTES_MAX},
    ),
]
ProcessAfter = Annotated[
    int,
    documented(
        Option(
            meaning="When the message is due: it is not delivered before.",
            kind=ValueKind.TIME,
            default="at once, or the queue's delay",
        )
    ),
]
DelayMs = Annotated[
    int,
    documented(
        Option(
            meaning="How long the message is delayed. Not together with {process_after}.",
            kind=ValueKind.DURATION,
            high=limits.DELAY_MS_MAX,
        )
    ),
]
Priority = Annotated[
    int,
    documented(
        Option(
            meaning="Messages of a higher priority come first.",
            kind=ValueKind.COUNT,
            low=limits.PRIORITY_MIN,
            high=limits.PRIORITY_MAX,
            default=f"{limits.PRIORITY_DEFAULT}",
        )
    ),
]
TtlMs = Annotated[
    int,
    documented(
        Option(
            meaning="How long the message lives from when it is due.",
            kind=ValueKind.DURATION,
            low=1,
            high=limits.TTL_MS_MAX,
        )
    ),
]
Attributes = Annotated[
    dict[str, str],
    documented(
        Option(
            meaning=(
                f"Delivered with the message. Keys of 1 to {limits.ATTRIBUTE_KEY_LENGTH_MAX} characters,"
                f" values of at most {limits.ATTRIBUTE_VALUE_LENGTH_MAX:,}."
            ),
            kind=ValueKind.PAIRS,
            high=limits.ATTRIBUTES_MAX,
            default="",
            option="attribute",
        )
    ),
]
DeduplicationId = Annotated[
    str,
    documented(
        Option(
            meaning="Within the window, a second message with the same id is not stored.",
            kind=ValueKind.TEXT,
            low=1,
            high=limits.DEDUPLICATION_ID_LENGTH_MAX,
            default="",
            option="dedup-id",
        )
    ),
]
WindowMs = Annotated[
    int,
    documented(
        Option(
            meaning="How long {deduplication_id} is remembered.",
            kind=ValueKind.DURATION,
            low=1,
            high=limits.DEDUPLICATION_WINDOW_MS_MAX,
            option="dedup-window",
        )
    ),
]
Group = Annotated[
    str,
    documented(
        Option(
            meaning="Messages of a group keep their order; groups are served round-robin.",
            kind=ValueKind.TEXT,
            low=1,
            high=limits.GROUP_LENGTH_MAX,
            default="",
        )
    ),
]
MaxAttempts = Annotated[
    int,
    documented(
        Option(
            meaning="Deliveries before the message fails.",
            kind=ValueKind.COUNT,
            low=1,
            high=limits.MAX_ATTEMPTS_MAX,
        )
    ),
]
DeadLetterQueue = Annotated[
    str,
    documented(
        Option(
            meaning="The queue for the message when it fails or expires; empty: it is deleted.",
            kind=ValueKind.QUEUE,
        )
    ),
]


class MessageOptions(TypedDict, total=False):
    """The members of `NewMessage` besides its content, as keywords of `produce`."""

    process_after: int | None
    delay_ms: int | None
    priority: int
    ttl_ms: int | None
    attributes: dict[str, str] | None
    deduplication_id: str | None
    deduplication_window_ms: int | None
    group: str | None
    max_attempts: int | None
    dead_letter_queue: str | None


class NewMessage(
    Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """A message to send. Without processAfter and delayMs it is due at once. null means the queue's rule."""

    content: Content
    process_after: ProcessAfter | None = None
    delay_ms: DelayMs | None = None
    priority: Priority = limits.PRIORITY_DEFAULT
    ttl_ms: TtlMs | None = None
    attributes: Attributes | None = None
    deduplication_id: DeduplicationId | None = None
    deduplication_window_ms: WindowMs | None = None
    group: Group | None = None
    max_attempts: MaxAttempts | None = None
    dead_letter_queue: DeadLetterQueue | None = None

    @classmethod
    def of_json(cls, value: Any, **options: Unpack[MessageOptions]) -> Self:
        """A message whose content is `value` as JSON; `Delivery.json` reads it.

        Raises TypeError for values that JSON cannot represent (bytes, dates), and InvalidJson (a ValueError) for NaN,
        infinities and values that are nested deeper than 100 levels.
        """
        return cls(dumps(value), **options)

    @property
    def default_max_receives(self) -> int | None:
        """None; see NewMessageWithDefaultBound."""
        return None


OPTIONS = members_declared(NewMessage, Option)
"""All options by name."""
