"""A policy that is refused at load."""


class BadPolicyError(ValueError):
    """A document that the API server would refuse, or that can't be evaluated as the API server does.

    Attributes:
        file: its name.
        line: where, from 1.
        problem: `<field path>: must <rule>, got <value>`.
    """

    def __init__(self, file: str, line: int, problem: str) -> None:
        """Keep the parts and render `<file>:<line>: <problem>`."""
        self.file, self.line, self.problem = file, line, problem
        super().__init__(f"{file}:{line}: {problem}")
