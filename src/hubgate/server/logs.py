"""Logging: one JSON object per line on standard error, with the request id and without secrets. On a terminal,
`log_formats.py` writes short text instead.

Data that may contain a secret is not logged: no query strings, bodies or headers, the route's pattern instead of the
path, and only the type and frames of library errors, whose messages may quote a bound value. As a second safeguard,
a redactor removes everything that looks like a credential from free text.

Lines of requests are written together, a few times a second: a system call for each would take longer than the rest of
the line. All other lines are written at once, after the lines that were logged before them.
"""

import asyncio
import contextlib
import logging
import re
import select
import sys
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

import msgspec

from hubgate.server.clock import iso

current_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

# How long the line of a request waits for others, in seconds, and how many wait at most.
LONGEST_WAIT = 0.1
MOST_WAITING = 16
# As with other lines, the hub runs on if standard error was closed before or after its start, or its disk is full.
_WRITE_ERRORS = (OSError, ValueError, AttributeError)

_requests = logging.getLogger("hubgate.http")

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


class LineFormatter(logging.Formatter, ABC):
    """Formats the lines of requests, and all others as logging's formatters do."""

    @abstractmethod
    def format_request(self, line: RequestLine) -> str: ...


class JsonFormatter(LineFormatter):
    def format(self, record: logging.LogRecord) -> str:
        return msgspec.json.encode(line_of(record)).decode()

    def format_request(self, line: RequestLine) -> str:
        return msgspec.json.encode(line).decode()


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes log lines to a stream. `flush` writes the lines of requests that wait."""

    def __init__(self, stream: TextIO, formatter: LineFormatter) -> None:
        super().__init__(stream)
        self.setFormatter(formatter)
        self._format_request = formatter.format_request
        # A deque, because a thread may write it while the event loop appends.
        self._waiting: deque[str] = deque()
        self._is_timer_set = False

    def add_request(self, line: RequestLine) -> None:
        """Log a request. Called by the event loop."""
        self._waiting.append(self._format_request(line) + "\n")
        if len(self._waiting) >= MOST_WAITING:
            self.flush()
        if not self._is_timer_set:
            self._is_timer_set = True
            asyncio.get_running_loop().call_later(LONGEST_WAIT, self._on_timer)

    def _on_timer(self) -> None:
        self._is_timer_set = False
        self.flush()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(*_WRITE_ERRORS):
            self._write_waiting()
        super().emit(record)

    def flush(self) -> None:
        self.acquire()
        try:
            with contextlib.suppress(*_WRITE_ERRORS):
                self._write_waiting()
                super().flush()
        finally:
            self.release()

    def _write_waiting(self) -> None:
        while self._waiting:
            text = self._waiting.popleft()
            while self._waiting and len(text) + len(self._waiting[0]) <= select.PIPE_BUF:
                text += self._waiting.popleft()
            self.stream.write(text)


def log_request(line: RequestLine) -> None:
    if not _requests.isEnabledFor(logging.INFO):
        return
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineHandler):
            handler.add_request(line)


def flush() -> None:
    """Write all lines, before the process exits. `logging.shutdown` does not: when granian configures its loggers, the
    logging module forgets ours.
    """
    for handler in logging.getLogger().handlers:
        handler.flush()


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


def configure(stream: TextIO = sys.stderr, level: int = logging.INFO, formatter: LineFormatter | None = None) -> None:
    handler = LineHandler(stream, formatter or JsonFormatter())
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
