"""gunicorn's own messages in the form of all our logs."""

from gunicorn.config import Config
from gunicorn.glogging import Logger

from serving.logs import LineHandler, LineWriter


class ServerLogger(Logger):  # type: ignore[misc]  # gunicorn is untyped
    """gunicorn's own messages as JSON lines; there is no access log."""

    def setup(self, cfg: Config) -> None:
        """Replace the handlers that gunicorn installs (called at start and on reload)."""
        super().setup(cfg)
        self.error_log.handlers = [LineHandler(LineWriter())]
