"""Timings in words."""

import pytest

from forq_trio.model.schedules.types import Timing
from forq_trio.schedules.words import in_words


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        (Timing(every="90s"), "every 1 min 30 s"),
        (Timing(every="1s"), "every 1 s"),
        (Timing(daily=("08:00",), time_zone="Europe/Prague"), "every day at 08:00 in Prague"),
        (Timing(daily=("17:30", "08:00")), "every day at 08:00 and 17:30 UTC"),
        (Timing(cron="30 2 * * 7", time_zone="Europe/Prague"), "Sundays at 02:30 in Prague"),
        (Timing(cron="30 2 * * 0"), "Sundays at 02:30 UTC"),
        (Timing(cron="0 22 * * 1-5", time_zone="America/New_York"), "weekdays at 22:00 in New York"),
        (Timing(cron="0 9 * * mon,5,3"), "Mondays, Wednesdays and Fridays at 09:00 UTC"),
        (Timing(cron="0 3,4,6 * * *"), "every day at 03:00, 04:00 and 06:00 UTC"),
        (Timing(cron="0 0 8 * * *"), "every day at 08:00 UTC"),
        (Timing(cron="0 2 1 * *"), "1st of the month at 02:00 UTC"),
        (Timing(cron="0 2 12 * *"), "12th of the month at 02:00 UTC"),
        (Timing(cron="0 2 22 * *"), "22nd of the month at 02:00 UTC"),
        (Timing(cron="5 * * * *"), "every hour at :05 UTC"),
        (Timing(cron="*/15 * * * *"), "every 15 min UTC"),
        (Timing(cron="* * * * *"), "every minute UTC"),
        (Timing(cron="* * * * * *"), "every second UTC"),
        (Timing(cron="@weekly"), "Sundays at 00:00 UTC"),
        (Timing(cron="@hourly"), "every hour at :00 UTC"),
        (Timing(cron="*/7 * * * *"), "at the times of */7 * * * * UTC"),
        (Timing(cron="0 8 1 * 1"), "at the times of 0 8 1 * 1 UTC"),
        (Timing(cron="0 8 L * *"), "at the times of 0 8 L * * UTC"),
        (Timing(cron="0 8 * 1 *"), "at the times of 0 8 * 1 * UTC"),
        (Timing(cron="0 8 * * 5L"), "at the times of 0 8 * * 5L UTC"),
        (Timing(cron="10 0 8 * * *"), "at the times of 10 0 8 * * * UTC"),
    ],
)
def test_a_timing_is_said_in_words(timing, words):
    assert in_words(timing) == words
