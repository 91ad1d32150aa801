"""Logs: one JSON object a line on standard error, with the request's id, and never a secret.

What could hold a secret is not logged in the first place (no query strings, bodies or headers, and the pattern of a
route instead of its path). As a second fence every line passes a redactor that knows what our credentials look like.
"""

import logging
import re
import sys
import traceback
from contextvars import ContextVar
from typing import Any, TextIO

import msgspec

from hubgate.server.clock import iso

request_id_of_context: ContextVar[str | None] = ContextVar("request_id", default=None)

HIDDEN = "[hidden]"
_CREDENTIALS = re.compile(
    r"hf_[A-Za-z0-9_\-.~+/]{4,}"
    r"|whsec_[A-Za-z0-9+/=]{4,}"
    r"|(?i:bearer|basic)\s+[A-Za-z0-9\-._~+/=]{8,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?i:(?<=password=)|(?<=secret=)|(?<=token=)|(?<=code=)|(?<=verifier=))[^&\s\"']+"
)


def redacted(text: str) -> str:
    return _CREDENTIALS.sub(HIDDEN, text)


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": iso(int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        if request_id := request_id_of_context.get():
            line["request_id"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = "".join(traceback.format_exception(*record.exc_info, chain=False))
        return redacted(msgspec.json.encode(line).decode())


def configure(stream: TextIO = sys.stderr, level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # Their start-up chatter and access logs would only repeat ours.
    for name in ("_granian", "uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("granian.access").disabled = True
