"""The routes of Forq's API, each with its endpoint, and their part of the OpenAPI document."""

from typing import Any

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.http.forq_api.administration import administration_routes
from forq_trio.http.forq_api.batches import BatchEndpoints
from forq_trio.http.forq_api.calls import MakeRoute, calling, performing, with_starter
from forq_trio.http.forq_api.consumers import consumer_routes
from forq_trio.http.forq_api.dead_letters import dead_letter_routes
from forq_trio.http.forq_api.errors import answer_error, answer_forqs_error
from forq_trio.http.forq_api.keys import key_routes
from forq_trio.http.forq_api.logs import event_routes, history_routes
from forq_trio.http.forq_api.message_batches import message_batch_routes
from forq_trio.http.forq_api.messages import MessageEndpoints
from forq_trio.http.forq_api.outboxes import outbox_routes
from forq_trio.http.forq_api.publishing import publishing_routes
from forq_trio.http.forq_api.queues import QueueEndpoints
from forq_trio.http.forq_api.refusals import is_forqs_path
from forq_trio.http.forq_api.results import result_routes
from forq_trio.http.forq_api.schedules import schedule_routes
from forq_trio.http.forq_api.tokens import with_signing_key
from forq_trio.http.forq_api.workers import worker_routes
from forq_trio.http.router import Respond, Route
from forq_trio.jobs.backup import BackupJob
from forq_trio.model.access import endpoints as token_api
from forq_trio.model.endpoint import COMMAND_ENDPOINTS, PREFIX, Endpoint
from forq_trio.model.keys import endpoints as key_api
from forq_trio.model.messages import endpoints as api
from forq_trio.model.queues import endpoints as queue_api
from forq_trio.model.server import backup_endpoints as backup_api
from forq_trio.model.server import compaction_endpoints as compaction_api
from forq_trio.model.server import process_endpoints as process_api
from forq_trio.monitor.monitor import Monitor

_NO_STORE = ((b"cache-control", b"no-store"),)
"""For the one answer that contains a token's text: no proxy may store it."""

_IN_PLACE = frozenset(
    endpoint.name
    for endpoint in (
        api.SEND_MESSAGE,
        api.RECEIVE_MESSAGE,
        api.ACK_MESSAGE,
        api.NACK_MESSAGE,
        api.SEND_MESSAGES,
        api.RECEIVE_MESSAGES,
        api.ACK_MESSAGES,
        api.NACK_MESSAGES,
        api.EXTEND_LEASES,
        api.RELEASE_MESSAGES,
        key_api.OFFER_MESSAGE,
        key_api.OFFER_MESSAGES,
    )
)
"""They usually wait for the writer alone, so a task would cost more than the work (in_place.py)."""

_PARTS = (
    administration_routes,
    key_routes,
    dead_letter_routes,
    publishing_routes,
    outbox_routes,
    message_batch_routes,
    history_routes,
    consumer_routes,
    event_routes,
    schedule_routes,
    worker_routes,
    result_routes,
)
"""The parts of the API: each makes its routes, from a `MakeRoute` and the broker."""


def forq_routes(
    broker: Broker,
    access: Access,
    monitor: Monitor,
    *,
    backups: BackupJob | None = None,
    require_receipt: bool = False,
) -> list[Route]:
    """All routes under /api/v1, each behind a gate of `access`.

    backups: None if backups are not available over HTTP. require_receipt: see FORQ_REQUIRE_RECEIPT.
    """

    def route(endpoint: Endpoint[Any], respond: Respond) -> Route:
        path = PREFIX + endpoint.path
        gate = access.gate(endpoint.scope, path if endpoint.checks_scope else None)
        if is_forqs_path(path):  # Forq ignores parameters that it does not know
            on_error, parameters = answer_forqs_error, None
        else:
            on_error, parameters = answer_error, endpoint.query_names
        return Route(
            endpoint.method,
            path,
            respond,
            endpoint,
            on_error,
            gate,
            endpoint.head,
            in_place=endpoint.name in _IN_PLACE,
            parameters=parameters,
        )

    messages = MessageEndpoints(broker, require_receipt=require_receipt)
    batches = BatchEndpoints(broker)
    queues = QueueEndpoints(broker, monitor)
    return [
        route(api.SEND_MESSAGE, messages.send),
        route(api.RECEIVE_MESSAGE, messages.receive),
        route(api.ACK_MESSAGE, messages.ack),
        route(api.NACK_MESSAGE, messages.nack),
        route(api.SEND_MESSAGES, batches.send),
        route(api.RECEIVE_MESSAGES, batches.receive),
        calling(route, api.ACK_MESSAGES, broker.ack, wraps=True),
        calling(route, api.NACK_MESSAGES, broker.nack, wraps=True),
        calling(route, api.DISCARD_MESSAGES, broker.discard, wraps=True),
        calling(route, api.EXTEND_LEASES, broker.extend, wraps=True),
        calling(route, api.RELEASE_MESSAGES, broker.release, wraps=True),
        route(queue_api.LIST_QUEUES, queues.list),
        route(queue_api.SHOW_QUEUE, queues.show),
        route(queue_api.SHOW_HEALTH, queues.health),
        calling(route, api.SHOW_MESSAGE, broker.message),
        calling(route, api.PEEK_MESSAGES, broker.peek, wraps=True),
        *[performing(route, each, broker) for each in COMMAND_ENDPOINTS],
        *[each for part in _PARTS for each in part(route, broker)],
        calling(route, token_api.CREATE_TOKEN, with_signing_key(broker, access), headers=_NO_STORE),
        calling(route, token_api.LIST_TOKENS, broker.tokens, wraps=True),
        calling(route, token_api.REVOKE_TOKEN, broker.revoke_token),
        calling(route, process_api.LIST_PROCESSES, broker.processes, wraps=True),
        calling(route, compaction_api.SHOW_COMPACTION, broker.compaction_info),
        calling(route, compaction_api.START_COMPACTION, broker.start_compaction, about_caller=with_starter),
        calling(route, compaction_api.PAUSE_COMPACTION, broker.pause_compaction),
        calling(route, compaction_api.STOP_COMPACTION, broker.stop_compaction),
        *([] if backups is None else _backup_routes(route, backups)),
    ]


def _backup_routes(route: MakeRoute, backups: BackupJob) -> list[Route]:
    return [
        calling(route, backup_api.START_BACKUP, backups.start, about_caller=with_starter),
        calling(route, backup_api.SHOW_BACKUPS, backups.state),
    ]
