"""Logging: one JSON object per line on standard error, with the request id and without secrets. On a terminal,
`log_formats.py` writes short text instead.

Data that may contain a secret is not logged: no query strings, bodies or headers, the route's pattern instead of the
path, and only the type and frames of library errors, whose messages may quote a bound value. As a second safeguard,
a redactor removes everything that looks like a credential from free text.
"""

import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

import msgspec

from hubgate.server.clock import iso

current_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

HIDDEN = "[hidden]"
_CREDENTIALS = re.compile(
    r"hf(?:cs|rs)?_[A-Za-z0-9_\-.~+/]{4,}"
    r"|whsec_[A-Za-z0-9+/=]{4,}"
    r"|eyJ[\w-]+\.[\w-]+(\.[\w-]*)?"
    # Do not match our own phrases, such as "token exchange".
    r"|(?i:bearer|basic|token)\s+(?![a-z]{1,19}\b[.,:;]?(?:\s|$))[A-Za-z0-9\-._~+/=]{8,}"
    r"|(?<=://)[^/\s:@\"']*:[^\s\"']+(?=@)"
    r"|(?i:password|passwd|secret|token|code|verifier|csrf|cookie)(%3[dD]|[\"']?\s*[:=]\s*[\"']?)[^\s\"'&,}]+"
)
# Error messages from these modules are ours or Python's. Those of other libraries may quote the caller's input.
_QUOTABLE = {"builtins", "hubgate", "sqlite3", "asyncio", "json"}


def redacted(text: str) -> str:
    return _CREDENTIALS.sub(HIDDEN, text)


class RequestLine(msgspec.Struct):
    """The log line of a request. None of its fields can contain a secret, so the hot path needs no redactor."""

    time: str
    request_id: str
    method: str
    route: str
    status: int
    ms: float
    ip: str
    # The response was aborted after its first byte.
    cut: bool
    level: str = "info"
    message: str = "request"


class Line(msgspec.Struct, omit_defaults=True):
    time: str
    level: str
    message: str
    request_id: str | None = None
    error: str | None = None


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        request: RequestLine | None = getattr(record, "request", None)
        return msgspec.json.encode(request or line_of(record)).decode()


def log_request(logger: logging.Logger, line: RequestLine) -> None:
    """Log a request. The record is built by hand because `Logger.info` would search the stack for the caller."""
    if logger.isEnabledFor(logging.INFO):
        record = logging.LogRecord(logger.name, logging.INFO, "", 0, "request", (), None)
        record.request = line
        logger.handle(record)


def line_of(record: logging.LogRecord) -> Line:
    error = record.exc_info[1] if record.exc_info else None
    return Line(
        iso(int(record.created * 1_000_000)),
        record.levelname.lower(),
        redacted(record.getMessage()),
        current_request_id.get(),
        redacted("".join(_described(error))) if error is not None else None,
    )


def _described(error: BaseException) -> Iterator[str]:
    """The traceback of an error and its causes, the root cause first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    # The chain may be a cycle: an exception can be raised from itself.
    while cause is not None and cause not in chain:
        chain.insert(0, cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    for number, each in enumerate(chain):
        if number:
            yield "which led to\n"
        yield from traceback.format_tb(each.__traceback__)
        yield summary_of(each) + "\n"


def summary_of(error: BaseException) -> str:
    kind = type(error)
    quotable = kind.__module__.partition(".")[0] in _QUOTABLE
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"{name}: {error}" if quotable else name


def configure(
    stream: TextIO = sys.stderr, level: int = logging.INFO, formatter: logging.Formatter | None = None
) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter or JsonFormatter())
    # Our lines contain no thread or process data. The logging module documents these switches.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # The start-up messages and access logs of these loggers repeat ours. uvicorn warns about every upgrade request, and
    # httpx logs the addresses of requests to an object store.
    for name in ("_granian", "uvicorn", "uvicorn.access", "asyncio", "alembic", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("granian.access").disabled = True
