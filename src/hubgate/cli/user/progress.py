"""Progress display on standard error, only if it is a terminal."""

import shutil
import sys
import time
from types import TracebackType
from typing import Self

_INTERVAL = 0.1
_CELLS = 10


class _Line:
    """A line that is overwritten in place."""

    def __init__(self) -> None:
        self._enabled = sys.stderr is not None and sys.stderr.isatty()
        self._last = 0.0
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _is_due(self, *, last: bool) -> bool:
        now = time.monotonic()
        if not self._enabled or (not last and now - self._last < _INTERVAL):
            return False
        self._last = now
        return True

    def _write(self, text: str) -> None:
        width = max(shutil.get_terminal_size().columns - 1, 10)
        sys.stderr.write("\r" + text[:width].ljust(width))
        sys.stderr.flush()
        self._shown = True


class Bar(_Line):
    """A progress bar for one file after another: `model.bin ███████░░░ 70% 38 MB/s 3s`."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self._started, self._from = 0.0, 0

    def report(self, name: str, done: int, total: int) -> None:
        if name != self._name or done < self._from:
            self._name, self._started, self._from = name, time.monotonic(), done
        if self._is_due(last=done >= total):
            self._write(format_bar(name, done, total, done - self._from, time.monotonic() - self._started))


class Counter(_Line):
    def __init__(self, word: str) -> None:
        super().__init__()
        self._word = word

    def report(self, done: int, total: int) -> None:
        if self._is_due(last=done >= total):
            self._write(f"{done} of {total} {self._word}")


def format_bar(name: str, done: int, total: int, moved: int, seconds: float) -> str:
    share = done / total if total else 1.0
    cells = int(share * _CELLS)
    speed = moved / seconds if seconds > 0 else 0.0
    left = f" {round((total - done) / speed)}s" if speed else ""
    shown = name if len(name) <= 30 else "…" + name[-29:]
    return f"{shown} {'█' * cells}{'░' * (_CELLS - cells)} {int(share * 100)}% {format_size(int(speed))}/s{left}"


def format_size(size: int) -> str:
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
