"""Time that passes only when somebody sleeps."""

import pytest


class Clock:
    """Stands in for the passing of time: whoever sleeps moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.slept: list[float] = []
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr("time.sleep", self.sleep)
        monkeypatch.setattr(
            "forq_trio.client.sync_waits.Signal.wait", lambda signal, seconds: self.sleep(seconds)
        )

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
