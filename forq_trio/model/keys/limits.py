"""Bounds of keyed messages."""

from forq_trio.model.messages.limits import DELAY_MS_MAX, PRODUCE_BATCH_MAX

KEY_LENGTH_MAX = 200
KIND_LENGTH_MAX = 100
MAX_WAIT_MS_MAX = DELAY_MS_MAX
OFFER_BATCH_MAX = PRODUCE_BATCH_MAX
KINDS_LOOKED_AT_MAX = 1_000  # for one page of keys
KEYS_PAGE_MAX = 100
