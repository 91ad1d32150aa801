"""The format of log lines: short coloured text on a terminal, JSON elsewhere, or what HUBGATE_LOG selects.

A line of text has the same content as the JSON line, without the request's id and address; secrets are removed alike.
"""

import logging
import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TextIO

from hubgate.server import logs
from hubgate.server.logs import LineFormatter, RequestLine

_RESET = "\x1b[0m"
_DIM, _RED, _GREEN, _YELLOW, _CYAN = ("\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m")
_STATUS_COLOURS = {2: _GREEN, 3: _CYAN, 4: _YELLOW, 5: _RED}
_LEVEL_COLOURS = {"warning": _YELLOW, "error": _RED, "critical": _RED}


def configure(log: str, stream: TextIO | None = None) -> None:
    """Configure logging. `log` is the setting: text, json or empty, which means text on a terminal only."""
    output = sys.stderr if stream is None else stream
    # A service manager may have closed standard error.
    is_terminal = output is not None and output.isatty()
    formatter: LineFormatter = logs.JsonFormatter()
    if log == "text" or (log == "" and is_terminal):
        formatter = TextFormatter(colour=is_terminal and shows_colour(os.environ))
    logs.configure(output, formatter=formatter)


def shows_colour(environment: Mapping[str, str]) -> bool:
    """Whether the user wants colours on a terminal. A non-empty NO_COLOR switches them off (https://no-color.org)."""
    return not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


class TextFormatter(LineFormatter):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format_request(self, line: RequestLine) -> str:
        status = self._coloured(str(line.status), _STATUS_COLOURS.get(line.status // 100, ""))
        cut = " aborted" if line.cut else ""
        clock = datetime.fromisoformat(line.time).astimezone().strftime("%H:%M:%S")
        duration = self._coloured(f"{line.ms:.0f} ms", _DIM)
        return f"{self._coloured(clock, _DIM)} {line.method:<6} {line.route} {status} {duration}{cut}"

    def format(self, record: logging.LogRecord) -> str:
        line = logs.line_of(record)
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        level = "" if line.level == "info" else self._coloured(line.level, _LEVEL_COLOURS.get(line.level, "")) + " "
        head = f"{self._coloured(clock, _DIM)} {level}{_printable(line.message)}"
        return f"{head}\n{_indented(line.error)}" if line.error else head

    def _coloured(self, text: str, colour: str) -> str:
        return f"{colour}{text}{_RESET}" if self._colour and colour else text


def _printable(text: str) -> str:
    """Text as one line without control characters, which could imitate other lines or move the terminal's cursor."""
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _indented(text: str) -> str:
    lines = text.rstrip().splitlines()
    return "\n".join("    " + "".join(c if c.isprintable() else "?" for c in line) for line in lines)
