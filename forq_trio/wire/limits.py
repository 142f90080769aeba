"""The bounds of requests that a client has to know."""

from forq_trio.model.limits import CONSUMER_LEASE_MESSAGES_DEFAULT as CONSUMER_LEASE_MESSAGES_DEFAULT
from forq_trio.model.limits import EVENTS_PAGE_DEFAULT as EVENTS_PAGE_DEFAULT
from forq_trio.model.limits import EXPORT_PAGE_MAX as EXPORT_PAGE_MAX
from forq_trio.model.limits import EXPORT_PARTITIONS_DEFAULT as EXPORT_PARTITIONS_DEFAULT
from forq_trio.model.limits import PRODUCE_BATCH_BYTES_MAX as PRODUCE_BATCH_BYTES_MAX
from forq_trio.model.limits import PRODUCE_BATCH_MAX as PRODUCE_BATCH_MAX
from forq_trio.model.limits import STAGE_PAGE_BYTES_MAX as STAGE_PAGE_BYTES_MAX
from forq_trio.model.limits import STAGE_PAGE_MESSAGES_MAX as STAGE_PAGE_MESSAGES_MAX
from forq_trio.model.limits import WAIT_MS_MAX as WAIT_MS_MAX
