"""How long a request may take, by what its caller asks for."""

import re
from functools import lru_cache

MARGIN_SECONDS = 0.2
"""Taken off the caller's timeout, so that our answer is the one it sees and not its own deadline."""

_LEAST_SECONDS = 0.1
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:h|ms|us|ns|m|s))+")
_DURATION_PART = re.compile(r"([0-9.]+)(h|ms|us|ns|m|s)")
_TIMEOUT = re.compile(r"(?:^|&)timeout=([^&]*)")


@lru_cache(maxsize=64)
def seconds_allowed(query: str, most: float) -> float:
    """How long a request may take by its query `timeout=10s`, never longer than `most` seconds.

    The API server writes its webhook's timeoutSeconds there in Go's notation; what cannot be read counts as absent.
    """
    found = _TIMEOUT.search(query)
    if found is None or not _DURATION.fullmatch(found[1]):
        return most
    asked = sum(float(number) * _UNITS[unit] for number, unit in _DURATION_PART.findall(found[1]))
    return min(most, max(_LEAST_SECONDS, asked - MARGIN_SECONDS))
