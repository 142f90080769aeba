"""Bounds of schedules: how many there are, their times, and how much one batch sends for them."""

from forq_trio.model.access.limits import KEY_SHARE
from forq_trio.model.bounds.units import DAY_MS, MINUTE_MS, SECOND_MS

SCHEDULES_MAX = 200_000
SCHEDULES_A_TOKEN_MAX = SCHEDULES_MAX // KEY_SHARE  # the secret may make all
SCHEDULE_NAME_LENGTH_MAX = 128
SCHEDULES_PAGE_DEFAULT = 100
SCHEDULES_PAGE_MAX = 1_000

# Timing. DAILY: times of a day. JITTER: also less than until the next run.
CRON_LENGTH_MAX = 256
CRON_YEARS_MAX = 8  # until the next time: from 29 February 2096 to that of 2104
TIME_ZONE_LENGTH_MAX = 64
ZONE_YEARS_CACHED_MAX = 4_096  # when the clocks change, by zone and year
EVERY_MS_MIN = SECOND_MS
EVERY_MS_MAX = 366 * DAY_MS
DAILY_MAX = 100
JITTER_MS_MAX = DAY_MS
SCHEDULE_TIME_MS_MAX = 253_402_300_799_999  # the end of the year 9999
NEXT_RUNS_DEFAULT = 5
NEXT_RUNS_MAX = 100

# Runs. GRACE: a run that is later was missed. CAUGHT_UP: how many missed runs are sent. COUNTED: of the others that
# follow the clocks of a zone, those of this last time are counted. STEP: how much one batch does for due schedules.
RUN_GRACE_MS = MINUTE_MS
RUNS_CAUGHT_UP_MAX = 1_000
RUNS_COUNTED_MS_MAX = 3_660 * DAY_MS  # ten years
RUNS_KEPT_MAX = 100
RUNS_SHOWN_DEFAULT = 20
RUNS_STEP_MAX = 100
SCHEDULE_WEIGHT = (
    256  # messages that could be sent in the time that a change of a large schedule takes, about
)

assert SCHEDULES_PAGE_DEFAULT <= SCHEDULES_PAGE_MAX
assert RUNS_SHOWN_DEFAULT <= RUNS_KEPT_MAX
assert RUNS_STEP_MAX <= RUNS_CAUGHT_UP_MAX
assert CRON_YEARS_MAX * 366 * DAY_MS < RUNS_COUNTED_MS_MAX
assert NEXT_RUNS_DEFAULT <= NEXT_RUNS_MAX
assert JITTER_MS_MAX < EVERY_MS_MAX < SCHEDULE_TIME_MS_MAX
