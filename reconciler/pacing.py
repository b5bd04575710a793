"""How long to wait: back-off for what failed, a token bucket for what must not become a flood. Pure, time passed in."""

import msgspec


class Backoff(msgspec.Struct, frozen=True):
    """Exponential back-off, half of it fixed and half of it drawn, so that peers that failed together spread.

    Attributes:
        base: seconds after the first failure.
        cap: most seconds.
    """

    base: float
    cap: float

    def delay(self, failures: int, luck: float) -> float:
        """Give the seconds to wait after `failures` failures in a row (1 or more); `luck` is drawn from [0, 1)."""
        doublings = min(failures - 1, 62)
        return min(self.cap, self.base * 2.0**doublings) * (0.5 + luck / 2)


class TokenBucket:
    """`burst` at once, then `rate` a second. Not thread-safe: its owner has the lock."""

    def __init__(self, rate: float, burst: int) -> None:
        """Start full."""
        self._rate, self._burst = rate, float(burst)
        self._tokens, self._filled = self._burst, float("-inf")

    def reserve(self, now: float) -> float:
        """Take a token, on credit where there is none; gives the seconds to wait before using it."""
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._fill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self, now: float) -> None:
        if now > self._filled:
            self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
