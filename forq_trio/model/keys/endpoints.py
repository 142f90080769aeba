"""Endpoints for keyed messages: offer, show, reschedule and drop, one key or many."""

from types import NoneType

from forq_trio.model import errors, limits
from forq_trio.model.access.types import Scope
from forq_trio.model.endpoint import READ_ERRORS, STORE_ERRORS, WRITE_ERRORS, Answer, Endpoint
from forq_trio.model.keys import bodies
from forq_trio.model.keys.types import Offer, Offered
from forq_trio.model.messages.types import KeyedMessage, KeyPage
from forq_trio.model.paths import PathParameter, declare_path

_TAG = "Keys"
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
    description="One message of a key is pending at a time; `mode` says what an offer does if there is one.",
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
    description="They are carried out one after the other, so a key may occur twice. Each is refused alone.",
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
    description="Its content stays as it is. A message in process is refused.",
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
    description="Its receipt is void then. Without onceMore, what waits behind it is removed, too.",
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
    description="Those that were stored before this request, in any status. Messages without a key stay.",
    query=bodies.DropKeysQuery,
    answers=(Answer(200, "How many there were.", bodies.Dropped),),
    errors=(errors.QueueNotFound, *WRITE_ERRORS),
)
