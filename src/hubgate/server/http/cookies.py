"""Session, CSRF and flash cookies: names, reading and writing.

On https, names begin with `__Host-`: browsers accept such a cookie only with Secure and Path=/ and without Domain, so
neither a sibling subdomain nor plain http can plant a cookie (login CSRF, session fixation). On http, browsers reject
the prefix, so the plain name is used. A hub accepts only the name that matches the scheme of its public address.
"""

import re
from functools import cache

from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response

SESSION = "token"
VISITOR = "csrf"
FLASH = "flash"

_PREFIX = "__Host-"
# Whitespace around a pair (RFC 6265, section 5.4).
_SPACES = " \t"


def cookie_name(name: str, *, secure: bool) -> str:
    return f"{_PREFIX}{name}" if secure else name


def read_cookie(request: HubRequest, name: str, *, secure: bool) -> str | None:
    """The value of a cookie; None if it was not sent, or sent twice: one of two was planted."""
    values = _values(request, cookie_name(name, secure=secure))
    return values[0] or None if len(values) == 1 else None


def is_duplicated(request: HubRequest, name: str, *, secure: bool) -> bool:
    return len(_values(request, cookie_name(name, secure=secure))) > 1


def _values(request: HubRequest, name: str) -> list[str]:
    """All values of a cookie, read from the raw header: a parser that strips every kind of whitespace would accept a
    name that the browser did not recognize as prefixed, such as a name after a no-break space.
    """
    return [value.rstrip(_SPACES) for value in _pattern(name).findall(request.headers.get("cookie", ""))]


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Matches the value of each pair with this name, in one pass: a header may contain thousands of pairs and is read
    several times per page.
    """
    return re.compile(rf"(?:^|;)[{_SPACES}]*{re.escape(name)}=([^;]*)")


def set_cookie(response: Response, name: str, value: str, *, secure: bool, max_age: int | None = None) -> None:
    """Set a cookie; without `max_age` it lasts until the browser is closed."""
    response.set_cookie(cookie_name(name, secure=secure), value, max_age=max_age, secure=secure)


def delete_cookie(response: Response, name: str, *, secure: bool) -> None:
    """Delete a cookie, with the same attributes: browsers ignore a deletion that breaks the rules of the prefix."""
    response.set_cookie(cookie_name(name, secure=secure), "", max_age=0, secure=secure)
