"""Bounds of message batches: how many there are, how large, and how deep one is inside another."""

from forq_trio.model.access.limits import KEY_SHARE
from forq_trio.model.bounds.units import DAY_MS, MIB, MINUTE_MS, SECOND_MS

MESSAGE_BATCHES_MAX = 20_000  # that have not ended; as many are remembered in all
MESSAGE_BATCHES_OF_TOKENS_MAX = (
    MESSAGE_BATCHES_MAX - MESSAGE_BATCHES_MAX // KEY_SHARE
)  # the rest is the secret's
MESSAGE_BATCHES_BYTES_MAX = 128 * MIB  # of the messages that they are to send, as JSON
MESSAGE_BATCHES_BYTES_OF_TOKENS_MAX = MESSAGE_BATCHES_BYTES_MAX - MESSAGE_BATCHES_BYTES_MAX // KEY_SHARE
MESSAGE_BATCH_MEMBERS_MAX = 1_000_000  # that one batch ever has
MESSAGE_BATCH_MEMBERS_COUNTED_MAX = 10_000  # of all batches, at once, to know whether there are any
MESSAGE_BATCH_DEPTH_MAX = 8  # a batch without an outer one has depth 1

# EXPIRES: how long after it was made a batch ends in any case. REMEMBERED: how long one that has ended is shown, unless
# there are too many. RETRY: after which a message that its queue refused is sent again.
MESSAGE_BATCH_EXPIRES_MS_MIN = SECOND_MS
MESSAGE_BATCH_EXPIRES_MS_MAX = 90 * DAY_MS
MESSAGE_BATCH_EXPIRES_MS_DEFAULT = 7 * DAY_MS
MESSAGE_BATCH_REMEMBERED_MS = DAY_MS
MESSAGE_BATCH_RETRY_MS = MINUTE_MS

MESSAGE_BATCHES_PAGE_DEFAULT = 50
MESSAGE_BATCHES_PAGE_MAX = 100
MESSAGE_BATCH_WEIGHT = 40  # messages that could be sent in the time that a change of a batch takes, about

assert MESSAGE_BATCHES_PAGE_DEFAULT <= MESSAGE_BATCHES_PAGE_MAX
assert MESSAGE_BATCH_EXPIRES_MS_MIN <= MESSAGE_BATCH_EXPIRES_MS_DEFAULT <= MESSAGE_BATCH_EXPIRES_MS_MAX
