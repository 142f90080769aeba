"""The bounds of requests that a client has to know."""

from forq_trio.model.limits import CONSUMER_LEASE_MESSAGES_DEFAULT as CONSUMER_LEASE_MESSAGES_DEFAULT
from forq_trio.model.limits import PRODUCE_BATCH_BYTES_MAX as PRODUCE_BATCH_BYTES_MAX
from forq_trio.model.limits import PRODUCE_BATCH_MAX as PRODUCE_BATCH_MAX
from forq_trio.model.limits import WAIT_MS_MAX as WAIT_MS_MAX
