"""Endpoints for keyed messages: offer, show, reschedule and drop, one key or many."""

from types import NoneType

from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint, declare_topic
from forq_trio.model.keys import bodies
from forq_trio.model.keys.types import Offer, Offered
from forq_trio.model.messages.types import KeyedMessage, KeyPage
from forq_trio.model.paths import PathParameter, declare_path

_TAG = "Keys"
declare_topic(
    "Keys",
    "A message may have a key, and a kind that separates keys of one queue. A key is unique per queue "
    "and kind while its message is *pending*: ready, delayed, held, in process, or failed and not yet "
    "in the dead-letter queue. For uniqueness during a window, also after the message is done, there is "
    "`deduplicationId`; an offer takes none.\n\n"
    "In a path a key is one segment, percent-encoded once: `customer/41` is `customer%2F41`, and `%` is "
    "`%25`. Many clients and proxies take the keys `.` and `..` as steps in a path, also "
    "percent-encoded; a batch of offers has keys in its body.",
)
declare_path(
    key=PathParameter(
        "The key, percent-encoded except for A-Z a-z 0-9 - . _ ~; the keys . and .. are %2E and %2E%2E.",
        {"type": "string", "minLength": 1, "maxLength": limits.KEY_LENGTH_MAX},
        errors.InvalidKey,
    )
)
_ONE = "/queues/{queue}/keys/{key}"
_ALL = "/queues/{queue}/keys"
_OFFER_ERRORS = (errors.ProduceToDeadLetterQueue, errors.TooManyQueues, errors.QueueFull, *STORE_ERRORS)

OFFER_MESSAGE = Endpoint(
    "PUT",
    _ONE,
    Scope.PRODUCE,
    name="offerMessage",
    tag=_TAG,
    summary="Offer a message under a key",
    description="One message of a key is pending at a time; `mode` says what an offer does if there is one. What is "
    "answered is durable. The body has the options of a message but those of deduplication. An offer with "
    "neither `processAfter` nor `delayMs` has the same due time as a message that is due already. An "
    "update keeps id and sequence, and attempts begin anew.\n\n"
    "What waits behind a message in process is delivered after it, as a message of its own with the same "
    "key; a further such offer replaces it. A full queue (docs/queues.md#full-queues) refuses an offer "
    "that stores a message, or makes one larger, with 503 `forq.queue_full`.",
    query=bodies.KindQuery,
    body=Offer,
    answers=(
        Answer(200, "The message of the key was updated, or the offer was ignored.", Offered),
        Answer(201, "A message was stored, or waits behind the one in process.", Offered),
    ),
    errors=(errors.KeyExists, *_OFFER_ERRORS),
)
OFFER_MESSAGES = Endpoint(
    "POST",
    _ALL,
    Scope.PRODUCE,
    name="offerMessages",
    tag=_TAG,
    summary="Offer up to 1,000 messages in one commit",
    description="At most 4 MiB of content and 8 MiB of JSON in all. They are carried out one after the other, so a "
    "key may occur twice. Each is refused alone; the whole request is refused like a batch of sends. "
    "Offers that replace more than 1 MiB of stored contents are several commits, so that others do not "
    "wait for them; after an error the first ones may be stored.",
    body=bodies.Offerings,
    answers=(Answer(200, "One result per offer, in their order.", bodies.OfferResults),),
    errors=_OFFER_ERRORS,
)
LIST_KEYS = Endpoint(
    "GET",
    _ALL,
    Scope.BROWSE,
    name="listKeys",
    tag=_TAG,
    summary="The pending messages that have a key, page by page",
    description="A page has at most 4 MiB, and may be short although there is a next one.",
    query=bodies.KeysQuery,
    answers=(Answer(200, "The messages, by kind and key.", KeyPage),),
    errors=(errors.OutOfRange, *READ_ERRORS),
)
SHOW_KEY = Endpoint(
    "GET",
    _ONE,
    Scope.BROWSE,
    name="showKey",
    tag=_TAG,
    summary="Show the pending message of a key without changing it",
    description="Nothing is leased. 404 `not_found.key`: no message of the key is pending.",
    query=bodies.KindQuery,
    answers=(Answer(200, "The message, in whatever state, and what waits behind it.", KeyedMessage),),
    errors=(errors.KeyNotFound, *READ_ERRORS),
)
RESCHEDULE_KEY = Endpoint(
    "PATCH",
    _ONE,
    Scope.CANCEL,
    name="rescheduleKey",
    tag=_TAG,
    summary="Change when the message of a key is due",
    description="`processAfter` or `delayMs` is needed; all else stays as it is. 409 `conflict.message_in_flight` for "
    "a message in process; with `onceMore` it changes the offer that waits behind that one.",
    query=bodies.KindQuery,
    body=bodies.RescheduleRequest,
    answers=(Answer(200, "What is stored now.", Offered),),
    errors=(errors.KeyNotFound, errors.MessageInFlight, *WRITE_ERRORS),
)
DROP_KEY = Endpoint(
    "DELETE",
    _ONE,
    Scope.CANCEL,
    name="dropKey",
    tag=_TAG,
    summary="Remove the message of a key, also one in process",
    description="Its receipt is void then, and what waits behind it is removed, too. With `onceMore` only that is "
    "removed. With `revision` the message is removed only if it still has this revision: so what was read "
    "with a GET can be acknowledged. Deliveries in between do not matter, and what waits goes on.",
    query=bodies.DropKeyQuery,
    answers=(Answer(204, "It is removed.", NoneType),),
    errors=(errors.KeyNotFound, *WRITE_ERRORS),
)
DROP_KEYS = Endpoint(
    "DELETE",
    _ALL,
    Scope.ADMIN,
    name="dropKeys",
    tag=_TAG,
    summary="Remove all keyed messages of a kind",
    description="Those that were stored before this request, in any status. Messages without a key stay. Without "
    "`kind` the keys are those of no kind. 400 `bad_request.confirm.invalid` unless `confirm` is the name "
    "of the queue.",
    query=bodies.DropKeysQuery,
    answers=(Answer(200, "How many there were.", bodies.Dropped),),
    errors=(errors.QueueNotFound, *WRITE_ERRORS),
)
