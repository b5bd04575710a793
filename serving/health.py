"""Whether this process should get requests."""


class Health:
    """Ready, or the reason why not.

    Attributes:
        draining: true once the process was told to stop; it keeps answering for a while.
        trouble: what is wrong with the served certificate, empty when nothing is.
        missing: what it still has to get before it can answer, empty when nothing is.
    """

    def __init__(self) -> None:
        """Ready until someone says otherwise."""
        self.draining = False
        self.trouble = ""
        self.missing = ""

    def reason_not_ready(self) -> str:
        """Say why no requests should be sent here; empty when they should."""
        if self.draining:
            return "draining: told to stop"
        return self.trouble or self.missing
