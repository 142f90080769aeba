"""Interim stand-ins while the parts they stand for are built elsewhere. To be removed."""

import math
import secrets
import time
from types import SimpleNamespace

from forq_trio.model.access import digest


class S(SimpleNamespace):
    pass


class Hist:
    def _s(self, rng, k):
        n = 120
        step = {"10m": 5000, "1h": 30000, "24h": 720000}[rng]
        now = int(time.time() * 1000)
        return S(
            start_ms=now - n * step,
            step_ms=step,
            values=tuple(
                k * (1 + 0.2 * math.sin(i / 9) + 0.1 * math.sin(i * 2.1)) if i > 20 else None
                for i in range(n)
            ),
        )

    def total(self, m, r):
        return self._s(r, {"sent": 2300, "acked": 2200, "ready": 250000, "oldest": 4000}.get(m, 10))

    def queue(self, q, m, r):
        return self._s(r, {"sent": 40, "acked": 38}.get(m, 10))

    def sparkline(self, q):
        return tuple(abs(math.sin(i / 7 + len(q))) for i in range(60))


class Mon:
    history = Hist()

    def now(self, q):
        return S(
            sent_per_second=12.3,
            delivered_per_second=12,
            acked_per_second=11.9,
            wait_p50_ms=3,
            wait_p99_ms=40,
            ack_p90_ms=3300,
            sent_total=5,
        )

    def total_now(self):
        return self.now("")

    def health(self, q):
        lv, v = (
            ("broken", "Backlog and no consumers")
            if q.startswith("w")
            else ("attention", "Acks slower than the lease")
            if "charge" in q
            else ("fine", "Healthy")
        )
        return S(
            level=lv,
            verdict=v,
            explanation="212 of 13,020 leases ended in the last 10 min before the ack came. Those messages are delivered again, so work may be done twice.",
            remedy="set_lease",
            remedy_value=60000,
            since=None,
        )

    def oldest_age_ms(self, q):
        return 492118

    async def refresh_ages(self, n, a):
        pass


