"""All bounds of the system, by topic. Relations between bounds are asserted; those between two topics are here.

The last word of each name is the unit. Values that come from Forq (contract F) are Forq's.
"""

from forq_trio.model.access.limits import *
from forq_trio.model.bounds.admin_ui import *
from forq_trio.model.bounds.http import *
from forq_trio.model.bounds.pgq import *
from forq_trio.model.bounds.storage import *
from forq_trio.model.bounds.units import *
from forq_trio.model.bounds.writer import *
from forq_trio.model.keys.limits import *
from forq_trio.model.logs.limits import *
from forq_trio.model.message_batches.limits import *
from forq_trio.model.messages.limits import *
from forq_trio.model.outboxes.limits import *
from forq_trio.model.publishing.limits import *
from forq_trio.model.queues.limits import *
from forq_trio.model.results.limits import *
from forq_trio.model.schedules.limits import *
from forq_trio.model.server.limits import *
from forq_trio.model.workers.limits import *

assert min(LEASE_MS_MAX, DELAY_MS_MAX, DEDUPLICATION_WINDOW_MS_MAX) >= SASQUATCH_SECONDS_MAX * SECOND_MS
assert SASQUATCH_WAIT_SECONDS_MAX * SECOND_MS <= WAIT_MS_MAX < IDLE_SECONDS_MAX * SECOND_MS
assert SASQUATCH_RETENTION_SECONDS_MAX * SECOND_MS <= TTL_MS_MAX
assert CONTENT_BYTES_MAX < SEND_BODY_BYTES_MAX < PRODUCE_BATCH_BYTES_MAX < BODY_BYTES_MAX < BODIES_BYTES_MAX
assert ATTRIBUTES_JSON_BYTES_MAX > 3 * ATTRIBUTES_BYTES_MAX
assert SHORT_ANSWER_BYTES_MAX < 6 * BROWSE_PAGE_BYTES_MAX < ANSWERS_BYTES_MAX  # 6: JSON's escapes
assert OUTBOX_PAGE_MAX <= PRODUCE_BATCH_MAX
assert CONTENT_BYTES_MAX < OUTBOX_PAGE_BYTES_MAX < min(COMMIT_BYTES_MAX, PRODUCE_BATCH_BYTES_MAX)
assert PEEK_DEFAULT <= BROWSE_PAGE_MAX
assert max(RECEIVE_BATCH_MAX, PRODUCE_BATCH_MAX, PART_MESSAGES_MAX, PURGE_BATCH_MAX) <= COMMIT_MESSAGES_MAX
assert LONE_SEND_WEIGHT * max(OFFER_BATCH_MAX, OUTBOX_PAGE_MAX, PRODUCE_BATCH_MAX) <= COMMIT_MESSAGES_MAX
assert SCHEDULE_WEIGHT <= COMMIT_MESSAGES_MAX
assert MESSAGE_BATCH_WEIGHT * MESSAGE_BATCHES_PAGE_MAX <= COMMIT_MESSAGES_MAX
assert max(CLAIM_FILTERED_MAX, EVICTED_MAX, DUE_BATCH_MAX, HISTORY_STEP_MESSAGES) <= COMMIT_MESSAGES_MAX
assert min(COMMIT_BYTES_MAX, HISTORY_STEP_BYTES, PUBLISH_STEP_BYTES_MAX) > CONTENT_BYTES_MAX
assert STEP_BYTES_MAX >= REWRITE_BYTES_MAX > CONTENT_BYTES_MAX
assert min(SEARCH_PAGE_MAX, PART_MESSAGES_MAX) >= REDRIVE_PAGE_MAX  # a step is one command, one transaction
assert STEP_SHARE * CONSUMER_PAGE_MESSAGES_MAX <= CONSUMER_STEP_MESSAGES_MAX <= COMMIT_MESSAGES_MAX
assert CONSUMER_STEP_MESSAGES_MAX <= CONSUMER_STEP_DROPPED_MAX * CONSUMER_PAGE_MESSAGES_MAX
assert 6 * CONSUMER_STEP_BYTES_MAX < CONSUMER_READ_BYTES_MAX < ANSWERS_BYTES_MAX
assert min(APP_QUEUES_MAX, STAGES_A_KEY_MAX) >= PUBLISH_STAGES_MAX
assert NACK_REASON_LENGTH_MAX <= REASON_LENGTH_MAX
assert STEP_SHARE * PUBLISH_PART_MESSAGES_MAX <= PUBLISH_STEP_MESSAGES_MAX <= COMMIT_MESSAGES_MAX
assert STEP_SHARE * PUBLISH_PART_BYTES_MAX <= PUBLISH_STEP_BYTES_MAX <= STAGE_PAGE_BYTES_MAX <= BODY_BYTES_MAX
assert 2 * COMMIT_BYTES_MAX <= DISK_RESERVE_MIB_MIN * MIB < DISK_RESERVE_MIB_MIN_WITH_HISTORY * MIB
assert 3 * READER_POOL_SIZE_MAX < OPEN_FILES_BESIDE_MAX < CONNECTIONS_MAX
assert max(UI_LOGIN_BYTES_MAX, 3 * CONTENT_BYTES_MAX) < UI_BODY_BYTES_MAX < UI_BODIES_BYTES_MAX
assert min(UI_FORM_FIELDS_MAX, COMMIT_MESSAGES_MAX) > MOVE_BATCH_MAX
assert STORED_BYTES_MAX < COMMIT_BYTES_MAX
assert SESSIONS_A_KEY_MAX < SESSIONS_MAX
