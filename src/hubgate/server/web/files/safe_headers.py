"""Headers that prevent an uploaded file from acting as a page of our origin (attacks O60, O71): browsers never treat it
as HTML, XML or script, never sniff its type, and give it no origin.
"""

from urllib.parse import quote

from hubgate.server.web.files.media_types import media_type


def file_headers(path: str) -> dict[str, str]:
    return {
        "content-type": media_type(path),
        "content-disposition": disposition(path),
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


def disposition(path: str) -> str:
    """Content-Disposition in printable ASCII: the full name percent-encoded, and a plain name for old clients (RFC
    6266).
    """
    name = path.rpartition("/")[2]
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_" for letter in name
    )
    return f"inline; filename*=UTF-8''{quote(name, safe='', errors='replace')}; filename=\"{plain}\";"
