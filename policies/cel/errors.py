"""What can go wrong: a text that is refused at load, or an evaluation without a value."""

import msgspec


class RefusedError(ValueError):
    """The API server would not compile this expression, or it and our engine are known to differ on it.

    Attributes:
        problem: what must hold and what was found, without a place.
        offset: where, in characters from the start of the expression.
    """

    def __init__(self, problem: str, offset: int = 0) -> None:
        """Keep both."""
        super().__init__(problem)
        self.problem, self.offset = problem, offset


class Failure(msgspec.Struct, frozen=True):
    """An evaluation that ended without a value.

    Attributes:
        message: the engine's words.
        exhausted: it ran out of steps, which no `||` hides.
    """

    message: str
    exhausted: bool = False
