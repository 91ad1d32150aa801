"""Responses that are in memory. `streaming.py` has responses that are sent in parts."""

from collections.abc import Mapping
from functools import cache
from http.cookies import BaseCookie, SimpleCookie
from typing import Any
from urllib.parse import quote

from hubgate.server.http.asgi import RawHeaders, Receive, Scope, Send

# Responses with these statuses have no body, and no length either (RFC 9110, section 8.6).
_WITHOUT_LENGTH = (204, 304)
# Characters of an address that a redirect must not encode again.
_IN_ADDRESS = ":/%#?=@[]!$&'()*+,;"


class Response:
    """A status, headers and a body. Type and length are added when it is sent, unless `headers` has them.

    The edge sends it as one head and one body (`edge/exchange.py`). It is also an ASGI application, so that handlers
    may return it, or any other application.
    """

    media_type: str | None = None

    def __init__(
        self,
        content: Any = b"",
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
    ) -> None:
        self.status_code = status_code
        # Names are in lower case.
        self.headers = {name.lower(): value for name, value in headers.items()} if headers else {}
        if media_type is not None:
            self.media_type = media_type
        self.cookies: list[bytes] = []
        self.body = self.render(content)

    def render(self, content: Any) -> bytes:
        return content.encode() if isinstance(content, str) else bytes(content)

    def raw_headers(self) -> RawHeaders:
        raw: RawHeaders = []
        headers = self.headers
        for name, value in headers.items():
            raw.append((name.encode("latin-1"), value.encode("latin-1")))
        if self.status_code not in _WITHOUT_LENGTH and "content-length" not in headers:
            raw.append((b"content-length", b"%d" % len(self.body)))
        if self.media_type is not None and "content-type" not in headers:
            raw.append((b"content-type", _content_type(self.media_type)))
        for cookie in self.cookies:
            raw.append((b"set-cookie", cookie))
        return raw

    def set_cookie(self, name: str, value: str, *, max_age: int | None, secure: bool) -> None:
        """Set a cookie for all pages of the hub. Without `max_age` it lasts until the browser is closed; 0 deletes
        it."""
        cookie: BaseCookie[Any] = SimpleCookie({name: value})
        attributes: dict[str, Any] = {"path": "/", "secure": secure, "httponly": True, "samesite": "lax"}
        if max_age is not None:
            attributes["max-age"] = max_age
        if max_age == 0:
            # For browsers that do not know Max-Age.
            attributes["expires"] = 0
        cookie[name].update(attributes)
        self.cookies.append(cookie.output(header="").strip().encode("latin-1"))

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers()})
        await send({"type": "http.response.body", "body": self.body})


class HTMLResponse(Response):
    media_type = "text/html"


class PlainTextResponse(Response):
    media_type = "text/plain"


class RedirectResponse(Response):
    def __init__(self, url: str, status_code: int = 307, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(b"", status_code, headers)
        self.headers["location"] = quote(url, safe=_IN_ADDRESS)


@cache
def _content_type(media_type: str) -> bytes:
    if media_type.startswith("text/") and "charset=" not in media_type.lower():
        media_type += "; charset=utf-8"
    return media_type.encode("latin-1")
