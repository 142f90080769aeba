"""Made-up records of a soak."""

import random

from bench.soak.record import Columns

MINUTE = 60


def steady(seconds: int, seed: int) -> Columns:
    """What a server that leaks nothing looks like on a machine that wavers: noise, and the saw of the log."""
    rng = random.Random(seed)

    def around(mean: float, noise: float) -> list[float | None]:
        return [mean * (1 + rng.uniform(-noise, noise)) for _ in range(seconds)]

    return {
        "requests_per_second": around(500, 0.1),
        "errors": [0] * seconds,
        "p50_ms": around(1.2, 0.1),
        "p99_ms": around(6, 0.8),
        "yardstick_p50_ms": around(0.7, 0.1),
        "rss_mib": around(60, 0.02),
        "file_descriptors": [52 + rng.randrange(3) for _ in range(seconds)],
        "log_mib": [5 + second % MINUTE for second in range(seconds)],
        "database_mib": around(2, 0.01),
        "stored": around(200, 0.3),
        "delayed": around(15, 0.5),
        "dead": around(8, 0.9),
    }


def growing(columns: Columns, series: str, share: float) -> Columns:
    """The same, but one series grows evenly by this share of its mean from the first second to the last."""
    values = [value or 0.0 for value in columns[series]]
    step = share * sum(values) / len(values) / len(values)
    return {**columns, series: [value + step * second for second, value in enumerate(values)]}
