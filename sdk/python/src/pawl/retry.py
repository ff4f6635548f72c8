"""When to try again, and how long to wait: pure decisions, shared by the client and the worker.

The rules are those of docs/idempotency.md: wait at least `Retry-After`, add jitter, keep a budget and a deadline, and
reuse the key.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Jitter = Literal["full", "equal", "decorrelated", "none"]


@dataclass(frozen=True)
class Retry:
    """How the client retries. Times are in seconds.

    `jitter`: "full" waits a random time up to a bound that grows with each attempt; "equal" between half the bound and
    the bound; "decorrelated" between `base` and three times the last one; "none" exactly the bound (truncated
    exponential).

    >>> Retry(jitter="none", base=0.1, maximum=1.0).pauses(lambda: 0.5, 5)
    [0.1, 0.2, 0.4, 0.8, 1.0]
    >>> Retry(base=0.2).pauses(lambda: 0.5, 3)
    [0.1, 0.2, 0.4]
    """

    jitter: Jitter = "full"
    base: float = 0.2
    maximum: float = 10.0
    multiplier: float = 2.0
    max_attempts: int | None = None
    deadline: float | None = 60.0

    def pauses(self, random: Callable[[], float], count: int) -> list[float]:
        """The first `count` pauses, without any `Retry-After`.

        >>> Retry(jitter="none", base=1.0, maximum=3.0).pauses(lambda: 0.0, 3)
        [1.0, 2.0, 3.0]
        """
        backoff = Backoff(self, random)
        return [backoff.next() for _ in range(count)]


#: One attempt, no retries.
NEVER = Retry(max_attempts=1)


class Backoff:
    """The pauses of one call, one after the other.

    >>> Backoff(Retry(jitter="decorrelated", base=0.5), lambda: 0.5).next()
    1.0
    """

    def __init__(self, retry: Retry, random: Callable[[], float]) -> None:
        self._retry, self._random = retry, random
        self._bound = self._last = retry.base

    def next(self) -> float:
        """The next pause in seconds.

        >>> backoff = Backoff(Retry(jitter="none", base=1.0), lambda: 0.0)
        >>> backoff.next(), backoff.next()
        (1.0, 2.0)
        """
        retry = self._retry
        if retry.jitter == "decorrelated":
            self._last = min(retry.maximum, retry.base + self._random() * (3 * self._last - retry.base))
            return self._last
        bound = min(retry.maximum, self._bound)
        self._bound = min(retry.maximum, self._bound * retry.multiplier)
        if retry.jitter == "none":
            return bound
        share = self._random()
        return bound * share if retry.jitter == "full" else bound * (1 + share) / 2


class Budget:
    """A bucket that bounds retries to a share of the successes: one for ten requests, and ten in reserve.

    >>> budget = Budget(tokens=1)
    >>> budget.allows_retry(), budget.allows_retry()
    (True, False)
    """

    def __init__(self, tokens: float = 10.0, maximum: float = 10.0, per_success: float = 0.1) -> None:
        self.tokens, self.maximum, self.per_success = tokens, maximum, per_success

    def success(self) -> None:
        """A request succeeded: earn a share of a retry.

        >>> budget = Budget(tokens=1.0)
        >>> budget.success()
        >>> budget.tokens
        1.1
        """
        self.tokens = min(self.maximum, self.tokens + self.per_success)

    def allows_retry(self) -> bool:
        """Take one token, if there is one.

        >>> Budget(tokens=0.5).allows_retry()
        False
        """
        allowed = self.tokens >= 1
        self.tokens -= allowed
        return allowed


#: Never runs out: for calls that stop for other reasons.
UNLIMITED = Budget(math.inf, math.inf)
