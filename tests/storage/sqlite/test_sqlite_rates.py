"""Tokens outlive restarts and crashes: never more deliveries than the rate allows, and never fewer."""

from contextlib import closing
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forq_trio.model.commands import Ack, Configure, ForgetQueue, Sweep, SweepKind
from forq_trio.model.queues.setting_values import Rate, RatePer
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import T0
from support.batches import do, run
from support.words import claim, contents, receipts, send

STEPS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 5), st.sampled_from(("go on", "restart", "crash"))),
    max_size=12,
)


def open_engine(path: Path) -> SqliteEngine:
    return SqliteEngine(str(path / "forq.db"), EngineSettings(), "normal")


def stored(engine: SqliteEngine) -> list[tuple[object, ...]]:
    return engine._database.connection.execute(
        "SELECT group_id, full_ms, wake_at FROM rate_buckets"
    ).fetchall()


@settings(deadline=None, max_examples=25)
@given(rate=st.builds(Rate, st.integers(1, 5), st.integers(1, 40), st.sampled_from(RatePer)), steps=STEPS)
def test_restarts_and_crashes_give_no_token_back(rate, steps):
    """A crash: the batch ran, and the process died before its commit, so nobody was answered."""
    with TemporaryDirectory() as directory:
        engine = open_engine(Path(directory))
        do(engine, Configure("q", SettingsChange(rate=rate)))
        run(engine, *(send("x", group="g") for _ in range(60)))
        now, tokens = T0, Fraction(rate.count)
        for later_ms, most, then in steps:
            now += later_ms
            tokens = min(tokens + Fraction(later_ms * rate.count, rate.period_ms), Fraction(rate.count))
            if then == "crash":
                engine.execute_batch(Batch([claim(most=most)], now))
            if then != "go on":
                engine.close()
                engine = open_engine(Path(directory))
            engine.execute_batch(Batch([], now))
            engine.commit()
            got = sum(len(do(engine, claim(most=most), now)) for _ in range(2))
            assert got <= int(tokens)
            assert got >= min(most, int(tokens))
            tokens -= got
        engine.close()


@pytest.fixture
def engine(tmp_path):
    engine = open_engine(tmp_path)
    yield engine
    engine.close()


def test_a_held_group_is_woken_after_a_restart(tmp_path):
    engine = open_engine(tmp_path)
    do(engine, Configure("q", SettingsChange(rate=Rate(1, 10, RatePer.GROUP))))
    run(engine, send("g1", group="g"), send("g2", group="g"))
    assert contents(do(engine, claim(most=9))) == ["g1"]
    engine.close()
    engine = open_engine(tmp_path)
    assert engine.tx.due.committed_next_ms == T0 + 10
    assert do(engine, claim(most=9), T0 + 9) == ()
    assert contents(do(engine, claim(most=9), T0 + 10)) == ["g2"]
    engine.close()


def test_only_buckets_that_lack_tokens_are_stored(engine):
    do(engine, Configure("q", SettingsChange(rate=Rate(2, 10, RatePer.GROUP))))
    run(engine, *(send("x", group=f"g{number}") for number in range(5)))
    do(engine, claim(most=9))
    assert stored(engine) == [(f"g{number}", T0 + 5, None) for number in range(5)]
    do(engine, Sweep(SweepKind.EXPIRED), T0 + 4)
    assert len(stored(engine)) == 5
    do(engine, Sweep(SweepKind.EXPIRED), T0 + 5)
    assert stored(engine) == []


def test_a_queue_without_a_rate_stores_nothing(engine):
    run(engine, send("x", group="g"))
    do(engine, claim(most=9))
    assert not engine.tx.rates.has_buckets
    assert stored(engine) == []


def test_deliveries_drop_the_buckets_that_are_full_again(tmp_path):
    """So the rows are about as many as groups that miss a token, however long the next sweep is away."""
    with closing(open_engine(tmp_path)) as engine:
        do(engine, Configure("q", SettingsChange(rate=Rate(1, 1_000, RatePer.GROUP))))

        def groups_after(groups: str, now_ms: int) -> str:
            run(engine, *(send("x", group=group) for group in groups), now_ms=now_ms)
            assert len(do(engine, claim(most=len(groups)), now_ms)) == len(groups)
            return "".join(sorted(str(group) for group, *_ in stored(engine)))

        assert groups_after("abcd", T0) == "abcd"
        assert groups_after("e", T0 + 999) == "abcde"
        assert groups_after("f", T0 + 1_000) == "cdef"
        assert groups_after("g", T0 + 1_001) == "efg"
        do(engine, Sweep(SweepKind.EXPIRED), T0 + 60_000)
        assert stored(engine) == []


def test_queues_that_are_forgotten_take_no_space_among_the_buckets(tmp_path):
    with closing(open_engine(tmp_path)) as engine:
        for n in range(20):
            queue = f"q{n}"
            do(engine, Configure(queue, SettingsChange(rate=Rate(1, 10))))
            do(engine, send(queue=queue))
            (delivery,) = do(engine, claim(queue=queue))
            assert engine.snapshot().rate_full_at(queue) > T0
            do(engine, Ack(queue, receipts([delivery])))
            assert do(engine, ForgetQueue(queue))
        assert len(engine.snapshot().parts.rates._committed_full_at) <= 2
