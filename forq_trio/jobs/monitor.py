"""The job that lets the monitor sample once a second, right after the second began."""

from math import floor

import trio

from forq_trio.monitor.monitor import Monitor

NAME = "monitor.sample"


class Sampler:
    """Wakes at whole seconds, so that each step of a chart has as many samples as the others."""

    name = NAME

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    async def run(self) -> None:
        while True:
            await trio.sleep_until(floor(trio.current_time()) + 1)
            self._monitor.sample()
