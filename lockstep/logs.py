"""Logs of our processes: one JSON object a line on standard error."""

import json
import logging
import sys
import time


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object: time (UTC), level, logger, message, and an exception's traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Render a record."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_as_json() -> None:
    """Send all logs of this process to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
