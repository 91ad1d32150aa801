"""Parses responses of a hub. Responses are not trusted: text is sanitized before it may reach a terminal."""

import json
import re
import unicodedata
from typing import Any

from hubgate.client.errors import HubgateError, UnexpectedAnswer, refusal_for
from hubgate.client.retry_policy import retry_after
from hubgate.client.wire import Response

MAX_MESSAGE = 1000

_JSON = frozenset({"application/json", "application/vnd.git-lfs+json"})
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')


def sanitized(text: str, most: int = MAX_MESSAGE) -> str:
    """Sanitize text to one line without control and bidi characters, which could move a terminal's cursor."""
    # Cc: control, Cf: format (bidi marks), Cs: surrogates, Cn: unassigned.
    shown = "".join(" " if c.isspace() else c for c in text[: 4 * most])
    printable = "".join(c for c in shown if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Cn"))
    line = " ".join(printable.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def json_of(answer: Response) -> Any:
    if answer.media_type not in _JSON:
        kind = sanitized(answer.media_type, 80) or "no content type"
        raise UnexpectedAnswer(f"{_source(answer)} answered with {kind} instead of JSON. Is this the address of a hub?")
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer(f"{_source(answer)} answered with JSON that cannot be read.") from None


def refusal(answer: Response, now: float) -> HubgateError:
    """The exception for a response that is not a success."""
    code = sanitized(answer.headers.get("x-error-code", ""), 60)
    message = _message(answer) or f"{_source(answer)} answered with status {answer.status}."
    return refusal_for(answer.status, code)(
        message,
        status=answer.status,
        code=code,
        request_id=sanitized(answer.headers.get("x-request-id", ""), 80),
        retry_after=retry_after(answer.headers.get("retry-after"), now),
    )


def oauth_error(answer: Response) -> tuple[str, str]:
    """`error` and `error_description` of a response (RFC 6749, section 5.2), or empty strings."""
    try:
        content = json.loads(answer.body) if answer.media_type in _JSON else {}
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


def next_page(answer: Response) -> str | None:
    """The URL in `Link: <…>; rel="next"` (RFC 8288)."""
    match = _NEXT.search(answer.headers.get("link", "")[:16_384])
    return match[1] if match else None


def _message(answer: Response) -> str:
    error, description = oauth_error(answer)
    if description:
        return description
    if error:
        return error
    if "x-error-message" in answer.headers:
        return sanitized(answer.headers["x-error-message"])
    if answer.media_type == "text/plain":
        return sanitized(answer.body.decode("utf-8", "replace"))
    return ""


def _source(answer: Response) -> str:
    # Without the query, which contains the permission of signed URLs.
    return answer.url.partition("?")[0][:200]
