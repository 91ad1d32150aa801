"""Responses at the addresses of receivers: temporary links and Spaces.

Anything that a receiver answers is sent as JSON, in a sandbox without an origin: it must not run as a page of the hub
(attack W39). A GET never reaches the receiver.
"""

import base64
import hashlib
import html

from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import HTMLResponse, Response
from hubgate.server.webhooks.tunnels.model import Answer

_POLICY = "sandbox; default-src 'none'"
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}"
)
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE_POLICY = f"{_POLICY}; style-src 'sha256-{_STYLE_HASH}'"
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>{title}</title><style>" + _STYLE.replace("{", "{{").replace("}", "}}") + "</style></head>"
    "<body><main><h1>{title}</h1><p>{text}</p></main></body></html>"
)


def receiver_page(title: str, text: str, status: int = 200) -> Response:
    """A page of the hub at the address of a receiver, which has none."""
    page = _PAGE.format(title=html.escape(title), text=html.escape(text))
    return HTMLResponse(page, status, {"content-security-policy": _PAGE_POLICY})


def forwarded_answer(answer: Answer) -> Response:
    headers = {"content-security-policy": _POLICY, "x-content-type-options": "nosniff"}
    if answer.retry_after is not None:
        headers["retry-after"] = answer.retry_after
    # A 204 or 304 has no body.
    body = b"" if answer.status in (204, 205, 304) else answer.body
    return Response(body, answer.status, headers, "application/json")


def path_at_receiver(request: HubRequest, segments: int) -> str:
    """The path at the receiver, as sent, with its query: without the first segments of the hub's path."""
    raw: str = request.scope["raw_path"].decode("ascii")
    path = "/" + "/".join(raw.split("/")[segments + 1 :])
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
