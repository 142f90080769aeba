"""Counts the passes of the loop: for tests of what may happen only once in each."""

import trio


class Passes(trio.abc.Instrument):
    """count: how many passes have begun."""

    count = 0

    def after_io_wait(self, timeout):
        self.count += 1
