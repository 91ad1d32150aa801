"""Headers under which a stranger's file cannot become a page of ours (attack O60): it is never HTML, XML or script to a
browser, never guessed at, and has no origin.
"""

import mimetypes
from urllib.parse import quote

_ACTIVE = (
    *("html", "xml", "svg", "javascript", "ecmascript", "x-shockwave", "pdf", "mathml", "vnd.wap"),
    # Pages in the form of mails, and what older browsers ran.
    *("message/", "multipart/", "x-component", "application/hta"),
)
_TEXT = "text/plain; charset=utf-8"
OTHERWISE = "application/octet-stream"


def file_headers(path: str) -> dict[str, str]:
    return {
        "content-type": type_of(path),
        "content-disposition": disposition(path),
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


def type_of(path: str) -> str:
    guessed = mimetypes.guess_type(path, strict=False)[0] or OTHERWISE
    if any(word in guessed for word in _ACTIVE):
        return _TEXT
    return f"{guessed}; charset=utf-8" if guessed.startswith("text/") else guessed


def disposition(path: str) -> str:
    name = path.rpartition("/")[2]
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_" for letter in name
    )
    return f"inline; filename*=UTF-8''{quote(name, safe='')}; filename=\"{plain}\";"
