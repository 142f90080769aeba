"""How often the sweeps run: as often as Forq's (F13), or as somebody wants it more often (S10)."""

import pytest

from forq_trio import app
from forq_trio.config.load import load
from forq_trio.jobs.cleanup import INTERVAL_SECONDS, intervals
from forq_trio.model.commands import SweepKind

MINIMAL = {"FORQ_AUTH_SECRET": "s" * 32}


def test_intervals_are_only_ever_shortened():
    assert intervals(failed_seconds_max=1e9, expired_seconds_max=1e9) == INTERVAL_SECONDS
    shortened = intervals(failed_seconds_max=7, expired_seconds_max=400)
    assert shortened == {
        SweepKind.EXPIRED: 300,
        SweepKind.EXPIRED_DLQ: 400,
        SweepKind.FAILED: 7,
        SweepKind.FAILED_DLQ: 7,
        SweepKind.STALE: 180,
    }


@pytest.mark.parametrize(
    ("variables", "failed", "expired"),
    [
        ({}, 60, 60),
        ({"FORQ_SASQUATCH_ENABLED": "false"}, 360, 300),
        ({"FORQ_SASQUATCH_POISON_CLEANUP_INTERVAL": "5"}, 5, 60),
        ({"FORQ_SASQUATCH_RETENTION_CLEANUP_INTERVAL": "5"}, 60, 5),
        ({"FORQ_SASQUATCH_DEDUP_CLEANUP_INTERVAL": "90"}, 60, 90),
    ],
)
def test_sasquatchs_settings_drive_them(variables: dict[str, str], failed: float, expired: float):
    seconds = app._sweep_seconds(load(environ=MINIMAL | variables).config)
    assert seconds[SweepKind.FAILED] == failed
    assert seconds[SweepKind.EXPIRED] == expired
