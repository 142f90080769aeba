"""Bounds of outboxes: how many positions are stored, and how large a page of a relay is."""

from forq_trio.model.access.limits import KEY_SHARE
from forq_trio.model.bounds.units import KIB, MIB
from forq_trio.model.bounds.writer import STEP_SHARE

OUTBOXES_MAX = 10_000
OUTBOXES_A_KEY_MAX = OUTBOXES_MAX // KEY_SHARE  # the secret may make all

# A page of a relay. It has at least one message. BYTES: of contents and options as they are stored.
OUTBOX_PAGE_MAX = 1_000
OUTBOX_PAGE_BYTES_MAX = MIB
# A page with more is long work: a batch with other calls has at most one such page, cut to the part STEP_SHARE.
RELAY_SHORT_MESSAGES_MAX = 50
RELAY_SHORT_BYTES_MAX = 64 * KIB
SENT_SET_ASIDE_MAX = 10_000  # of the messages that are refused for good; only the latest are stored
SET_ASIDE_PAGE_MAX = 1_000  # listed, sent again or deleted at once; a step has OUTBOX_PAGE_BYTES_MAX
SET_ASIDE_PAGE_DEFAULT = 100
SENT_QUEUES_MAX = 128  # whose messages a page has, or whose names it skips
SENT_FULL_QUEUES_MAX = 1_000  # queues whose messages of forq.send may wait without holding up others
SENT_COUNTED_MAX = 10_000  # of the messages of forq.send that wait, for metrics: a count reads each
OUTBOX_MARKS_MAX = 100  # by which a relay knows how old what waits is: one for each read that finds more

assert SET_ASIDE_PAGE_DEFAULT <= SET_ASIDE_PAGE_MAX <= SENT_SET_ASIDE_MAX
assert RELAY_SHORT_MESSAGES_MAX * STEP_SHARE <= OUTBOX_PAGE_MAX
assert RELAY_SHORT_BYTES_MAX * STEP_SHARE <= OUTBOX_PAGE_BYTES_MAX
assert OUTBOXES_A_KEY_MAX <= OUTBOXES_MAX
