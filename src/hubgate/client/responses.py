"""Parses responses of a hub. Responses are not trusted: text is sanitized before it may reach a terminal."""

import json
import re
import unicodedata
from typing import Any

from hubgate.client.errors import Gone, HubgateError, UnexpectedResponse, refusal_for
from hubgate.client.retry_policy import retry_after
from hubgate.client.wire import Response

MAX_MESSAGE = 1000

_JSON = frozenset({"application/json", "application/vnd.git-lfs+json"})
_OF_PROXIES = frozenset({429, 502, 503, 504})
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')


def printable(text: str) -> str:
    """Text as one line without control and bidi characters, which could move a terminal's cursor."""
    shown = "".join(" " if c.isspace() else c for c in text)
    # Cc: control, Cf: format (bidi marks), Cs: surrogates, Cn: unassigned.
    return "".join(c for c in shown if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Cn"))


def sanitized(text: str, max_length: int = MAX_MESSAGE) -> str:
    """Sanitize text to one line with single spaces."""
    line = " ".join(printable(text[: 4 * max_length]).split())
    return line if len(line) <= max_length else line[: max_length - 1] + "…"


def json_of(response: Response) -> Any:
    if response.media_type not in _JSON:
        kind = sanitized(response.media_type, 80) or "no content type"
        raise UnexpectedResponse(
            f"{_source(response)} answered with {kind} instead of JSON. Is this the address of a hub?"
        )
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        raise UnexpectedResponse(f"{_source(response)} answered with JSON that cannot be read.") from None


def refusal(response: Response, now: float) -> HubgateError:
    """The exception for a response that is not a success."""
    code = sanitized(response.headers.get("x-error-code", ""), 60)
    message = _message(response) or _unexplained(response)
    error = refusal_for(response.status, code)(
        message,
        status=response.status,
        code=code,
        request_id=sanitized(response.headers.get("x-request-id", ""), 80),
        retry_after=retry_after(response.headers.get("retry-after"), now),
    )
    if isinstance(error, Gone):
        error.oldest = _oldest(response)
    return error


def _oldest(response: Response) -> int | None:
    try:
        oldest = json.loads(response.body)["oldest"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    return oldest if type(oldest) is int else None


def oauth_error(response: Response) -> tuple[str, str]:
    """`error` and `error_description` of a response (RFC 6749, section 5.2), or empty strings."""
    try:
        content = json.loads(response.body) if response.media_type in _JSON else {}
    except (ValueError, RecursionError):
        return "", ""
    if not isinstance(content, dict):
        return "", ""
    error, description = content.get("error"), content.get("error_description")
    return (
        # Outside OAuth a hub puts its whole message here.
        sanitized(error) if isinstance(error, str) else "",
        sanitized(description) if isinstance(description, str) else "",
    )


def next_page(response: Response) -> str | None:
    """The URL in `Link: <…>; rel="next"` (RFC 8288)."""
    match = _NEXT.search(response.headers.get("link", "")[:16_384])
    return match[1] if match else None


def _message(response: Response) -> str:
    error, description = oauth_error(response)
    if description:
        return description
    if error:
        return error
    if "x-error-message" in response.headers:
        return sanitized(response.headers["x-error-message"])
    # Plain text of another server, such as "Not Found", does not explain anything.
    if response.media_type == "text/plain" and "x-request-id" in response.headers:
        return sanitized(response.body.decode("utf-8", "replace"))
    return ""


def _unexplained(response: Response) -> str:
    text = f"{_source(response)} answered with status {response.status}."
    # Every response of a hub has a request id; those of a proxy whose hub is down have none.
    is_foreign = "x-request-id" not in response.headers and response.status not in _OF_PROXIES
    return f"{text} Is this the address of a hub?" if is_foreign else text


def _source(response: Response) -> str:
    # Without the query, which is the credential of a signed URL.
    return response.url.partition("?")[0][:200]
