"""Where a commit runs: on the event loop while the disk answers fast, in a worker thread when it does not.

A commit waits for the disk (fsync) and for nothing else. On the loop that wait stops all connections. In a thread it
costs two switches between threads, which take longer than a short wait. So the policy keeps a moving average of commit
times, moves to the thread above one threshold, and moves back below a lower one. Statements always run on the loop:
they are short, but need the interpreter lock between any two steps, and a thread that has to win it back from a busy
loop at each step is slower by orders of magnitude.
"""

from forq_trio.model import limits

_WEIGHT = 0.05


class CommitPolicy:
    """Decides by the moving average of past commits, in seconds. Starts on the loop."""

    def __init__(
        self,
        thread_above_seconds: float = limits.COMMIT_INLINE_SECONDS_MAX,
        inline_below_seconds: float = limits.COMMIT_INLINE_SECONDS_MAX * 0.7,
    ) -> None:
        assert inline_below_seconds <= thread_above_seconds
        self._thread_above = thread_above_seconds
        self._inline_below = inline_below_seconds
        self.average_seconds = 0.0
        self.inline = True

    def record(self, seconds: float) -> None:
        """Note how long a commit waited for the disk, wherever it ran."""
        self.average_seconds += _WEIGHT * (seconds - self.average_seconds)
        if self.average_seconds > self._thread_above:
            self.inline = False
        elif self.average_seconds < self._inline_below:
            self.inline = True
