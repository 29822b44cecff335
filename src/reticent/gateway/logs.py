"""Logs of a gateway: lines for people, or one JSON object per line for machines."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal

Format = Literal["text", "json"]
Level = Literal["debug", "info", "warning", "error"]


class JsonLines(logging.Formatter):
    """One object per record: time in UTC, level, logger, message and, if there is one, the exception."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


def log_to_stderr(kind: Format, level: Level) -> None:
    """Send all logs to standard error in this format, from this level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter("%(asctime)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=level.upper())
