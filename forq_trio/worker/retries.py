"""When the messages of a handler are tried again after a failure: its option `retry`, and its queue's rules.

A handler's policies say how many attempts a message gets, whoever sent it. The queue counts the attempts, by the bound
of the message or its own. So where a policy gives more of them, the nack raises the message's bound: to the policy's
attempts; or, where a function decides each time, to as many further ones as the queue gives, so that a message which
kills its workers ends nevertheless. For an error that no policy counts the nack sets it back to the queue's. A sender
can give a message fewer attempts than the queue does; a policy does not raise that number.
"""

import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from zlib import crc32

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.durations import Duration
from forq_trio.model.queues.back_off import backoff_ms
from forq_trio.model.queues.setting_values import ExponentialBackOff
from forq_trio.worker.jobs import Job, JobAttempts
from forq_trio.worker.outcomes import Settlement, reason_of
from forq_trio.worker.send_options import duration_ms

logger = logging.getLogger("forq_trio.worker")

_DELAYS_ADDED_MAX = 10_000


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """A delay that grows from failure to failure: `first`, then `factor` times as long each time, at most `most`.
    jitter: the share of it that is random, 0 to 1; with 0.5 a delay of 10 s is 5 to 10 s. attempts: how many a message
    gets; None for as many as its queue says.

    The random share is computed from the message and its attempt. Raises ValueError and TypeError.
    """

    first: Duration
    factor: float = 2
    most: Duration = "1h"
    jitter: float = 0
    attempts: int | None = None

    def __post_init__(self) -> None:
        formula_of(self)
        if self.attempts is not None:
            _check("attempts", self.attempts, 1, limits.MAX_ATTEMPTS_MAX)
            if not isinstance(self.attempts, int):
                raise TypeError(f"attempts: a whole number, not {self.attempts!r}")


Delays: TypeAlias = Sequence[Duration]
"""The delay after each failed attempt; the failure after the last one is final."""
RetryFunction: TypeAlias = Callable[[int, Exception], Duration | None]
"""Called with the attempt (from 1) and its error, for some failures twice. None: no more attempts."""
RetryPolicy: TypeAlias = Backoff | Delays | RetryFunction
RetryOption: TypeAlias = RetryPolicy | Mapping[type[Exception], RetryPolicy | None] | None


def formula_of(given: Backoff) -> ExponentialBackOff:
    """Its formula, which is that of a queue's back-off. Raises ValueError and TypeError."""
    longest = limits.NACK_DELAY_MS_MAX
    most_ms = _delay_ms("most", given.most, 1, longest)
    first_ms = _delay_ms("first", given.first, 1, most_ms)
    factor = _check("factor", given.factor, 1, limits.BACKOFF_FACTOR_MAX)
    return ExponentialBackOff(first_ms, factor, most_ms, _check("jitter", given.jitter, 0, 1))


class _Policy(Protocol):
    attempts: float | None
    """How many a message gets: math.inf if its policy decides that each time, None if its queue does."""

    def delay_ms(self, attempt: int, error: BaseException, seed: int) -> int | None:
        """The delay after this failed attempt; None for no more attempts. seed: a number of the message's own."""


class _Steps:
    def __init__(self, delays: Delays) -> None:
        self._delays_ms = [_delay_ms("a delay", each) for each in delays]
        self.attempts: float | None = len(delays) + 1

    def delay_ms(self, attempt: int, error: BaseException, seed: int) -> int | None:
        return self._delays_ms[attempt - 1] if attempt <= len(self._delays_ms) else None


class _Growing:
    def __init__(self, given: Backoff) -> None:
        self._formula = formula_of(given)
        self.attempts: float | None = given.attempts

    def delay_ms(self, attempt: int, error: BaseException, seed: int) -> int | None:
        if self.attempts is not None and attempt >= self.attempts:
            return None
        return backoff_ms(attempt, self._formula, seed)


class _Decided:
    attempts: float | None = math.inf

    def __init__(self, function: RetryFunction) -> None:
        self._function = function

    def delay_ms(self, attempt: int, error: BaseException, seed: int) -> int | None:
        decided = self._function(attempt, error)  # type: ignore[arg-type]  # it may be SystemExit
        return None if decided is None else _delay_ms("a delay", decided)


class RetryPolicies:
    """The policies of a handler. Raises ValueError and TypeError, which say what is wrong with its option."""

    def __init__(self, given: RetryOption) -> None:
        by_type: Mapping[type[Exception], RetryPolicy | None]
        by_type = given if isinstance(given, Mapping) else {} if given is None else {Exception: given}
        for kind in by_type:
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise TypeError(f"a type of exceptions, not {kind!r}")
        self._policies = {kind: _policy_of(each) for kind, each in by_type.items()}

    @property
    def attempts(self) -> float | None:
        """How many a message gets whose errors have no policy of their own; None if its queue says that."""
        policy = self._policies.get(Exception)
        return None if policy is None else policy.attempts

    def covers(self, error: BaseException) -> bool:
        """Whether there is a policy for this error."""
        return self._policy_for(error) is not None

    def after(self, error: BaseException, reason: str, job: Job) -> Settlement:
        """What becomes of a message whose attempt failed. A policy that fails itself leaves it to the queue."""
        policy = self._policy_for(error)
        if policy is None:
            return _as_the_queue_says(reason, job)
        try:
            delay_ms = policy.delay_ms(job.attempt, error, job.sequence or crc32(job.id.encode()))
        except (Exception, SystemExit) as problem:
            told = f"the handler's retry policy failed: {reason_of(problem)}"
            logger.error("%s: %s: %s", job.queue, job.id, told)
            return _as_the_queue_says(f"{told}; it was asked about {reason}", job)
        if delay_ms is None:
            return Settlement("nack", reason=storable_reason(reason), final=True)
        return self._again(policy, delay_ms, reason, job)

    def after_delay(self, delay: Duration, error: BaseException, reason: str, job: Job) -> Settlement:
        """As `after`, with a delay that the handler chose."""
        policy, delay_ms = self._policy_for(error), duration_ms("delay", delay)
        if policy is not None and policy.attempts is not None and job.attempt >= policy.attempts:
            return Settlement("nack", reason=storable_reason(reason), final=True)
        return self._again(policy, delay_ms, reason, job)

    def raise_above(self, queue: int) -> bool:
        """Whether a policy gives more attempts than the queue."""
        return any(each.attempts is not None and each.attempts > queue for each in self._policies.values())

    def outlast(self, ttl_ms: int) -> bool:
        """Whether the delays of a policy together are longer than a time to live, as far as they are known."""
        return any(_is_longer(each, ttl_ms) for each in self._policies.values())

    def _policy_for(self, error: BaseException) -> _Policy | None:
        kinds = (*type(error).__mro__, Exception)  # SystemExit, too, is a failure
        return next((self._policies[each] for each in kinds if each in self._policies), None)

    @staticmethod
    def _again(policy: _Policy | None, delay_ms: int, reason: str, job: Job) -> Settlement:
        attempts = None if policy is None else policy.attempts
        granted = job.attempts.lowered if attempts is None else job.attempts.granted(job.attempt, attempts)
        return Settlement("nack", delay_ms, storable_reason(reason), max_attempts=granted)


def _as_the_queue_says(reason: str, job: Job) -> Settlement:
    """The settlement of a failed attempt to which no policy applies."""
    return Settlement("nack", reason=storable_reason(reason), max_attempts=job.attempts.lowered)


class AttemptBounds:
    """How many attempts the messages of a queue get.

    queue: the queue's bound; None if its settings may not be read. fixed: whether messages cannot have another one, as
    those of a table.
    """

    def __init__(self, retries: RetryPolicies, queue: int | None, *, fixed: bool = False) -> None:
        self._policy = retries.attempts
        self._raised = queue is not None and not fixed and retries.raise_above(queue)
        self._queue = queue
        self._fixed = fixed
        self._known: dict[int | None, JobAttempts] = {}

    def of(self, own: int | None) -> JobAttempts:
        """The attempts of a message. own: the bound that it has itself."""
        found = self._known.get(own)
        if found is None:
            if len(self._known) > limits.RECEIVE_BATCH_MAX:  # a function's bounds grow with each attempt
                self._known.clear()
            found = self._known[own] = self._made(own)
        return found

    def _made(self, own: int | None) -> JobAttempts:
        queue = limits.ATTEMPTS_MAX_DEFAULT if self._queue is None else self._queue
        counted = math.inf if self._queue is None else self._queue
        if own is not None and not self._fixed:
            counted = own
        policy = counted if self._policy is None else self._policy
        if self._fixed or (own is not None and own <= queue):
            return JobAttempts(min(policy, counted), counted, math.inf, queue)
        lowered = queue if self._raised and own is not None else None
        last = lowered if self._policy is None and lowered is not None else policy
        return JobAttempts(last, counted, 0 if math.isinf(counted) else counted, queue, lowered)


def _policy_of(given: RetryPolicy | None) -> _Policy:
    if given is None:
        return _Steps(())
    if isinstance(given, Backoff):
        return _Growing(given)
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        return _Steps(given)
    if not callable(given) or isinstance(given, type):
        raise TypeError(f"a list of delays, a Backoff, or a function of attempt and error, not {given!r}")
    if inspect.iscoroutinefunction(given):
        raise TypeError("a function that returns the delay, not an async one")
    try:
        inspect.signature(given).bind(1, Exception())
    except TypeError as error:
        raise TypeError(f"a function of attempt and error: {error}") from None
    except ValueError:
        pass  # a built-in one that does not tell its parameters
    return _Decided(given)


def _is_longer(policy: _Policy, than_ms: int) -> bool:
    if isinstance(policy, _Decided) or policy.attempts is None:
        return False
    total, error = 0, Exception()
    for attempt in range(1, min(int(policy.attempts), _DELAYS_ADDED_MAX)):
        total += policy.delay_ms(attempt, error, 0) or 0
        if total > than_ms:
            return True
    return False


def _delay_ms(name: str, given: Duration, low: int = 0, high: int = limits.NACK_DELAY_MS_MAX) -> int:
    delay_ms = duration_ms(name, given)
    if not low <= delay_ms <= high:
        raise ValueError(f"{name}: {low / 1_000:g} to {high / 1_000:,.0f} seconds, not {given!r}")
    return delay_ms


def _check(name: str, given: float, low: float, high: float) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{name}: a number, not {given!r}")
    if not low <= given <= high:
        raise ValueError(f"{name}: {low} to {high:,}, not {given!r}")
    return given
