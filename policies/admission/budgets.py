"""Bounds the work of one request over all policies."""

from typing import Final

EXPRESSIONS: Final = 2000
"""Evaluations of one request. Each is bounded by the engine: 10,000 steps of loops."""


class Budget:
    """Counts evaluations; shared by all policies of one request, used by one thread."""

    def __init__(self, expressions: int = EXPRESSIONS) -> None:
        """Set how many evaluations there may be."""
        self._left = expressions

    def spend(self) -> bool:
        """Take one; false when none is left."""
        self._left -= 1
        return self._left >= 0
