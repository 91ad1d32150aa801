"""What a client metadata document must be, rule by rule, each with its cure. Pure.

The seed's table and the IETF draft (OAuth Client ID Metadata Document). Unknown members and further grant types are
passed over: a document may be written for several servers.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from hubgate.server.egress.exchange import Answer
from hubgate.server.errors import Unprocessable
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.redirects import LOOPBACK, check_redirect_uri, host_of
from hubgate.server.scopes import BUILT_IN

LONGEST_NAME = 200
MOST_REDIRECT_URIS = 50
DEFAULT_SCOPES = ("openid", "profile")
# What JSON can spell and no page or database takes: a NUL, and half a surrogate pair.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Finding:
    """`found` is what stood there; `cure` is empty where the rule holds."""

    rule: str
    found: str
    cure: str = ""

    @property
    def holds(self) -> bool:
        return not self.cure


def check_address(url: str, *, http_loopback: bool) -> list[Finding]:
    return list(_address(url, http_loopback))


def _address(url: str, http_loopback: bool) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
        host = host_of(parts)
    except ValueError:
        yield Finding("It is an address", url, "Write an address such as https://app.example/.well-known/oauth-cimd.")
        return
    allowed = parts.scheme == "https" or (http_loopback and parts.scheme == "http" and host in LOOPBACK)
    yield Finding("It begins with https://", parts.scheme, "" if allowed else "Serve the document over https.")
    yield _rule("It has a plain host, without a user name", parts.netloc, host is not None, "Write host and port only.")
    yield _rule("It has a path", parts.path, parts.path not in ("", "/"), "Put the document at a path of its own.")
    dots = any(unquote(segment) in (".", "..") for segment in parts.path.split("/"))
    yield _rule("Its path has no . or .. in it", parts.path, not dots, "Write the path without dot segments.")
    yield _rule("It has no fragment", parts.fragment, "#" not in url, "Remove what follows the #.")
    clean = re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", url) is not None
    yield _rule("It is plain ASCII", url, clean, "Percent-encode what is not.")


def check_answer(answer: Answer) -> list[Finding]:
    kind = (answer.header("content-type") or "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    return [
        _rule(
            "It answers 200",
            str(answer.status),
            answer.status == 200,
            "Answer 200 at this very address: redirects are not followed.",
        ),
        _rule("It is sent as JSON", kind, is_json, "Send Content-Type: application/json."),
        _rule("It is small enough", f"{len(answer.body):,} bytes", not answer.truncated, "Make the document smaller."),
    ]


def check_document(url: str, body: bytes) -> tuple[list[Finding], App | None]:
    """The app, if every rule holds."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    findings = [
        _rule("It is one JSON object", type(document).__name__, isinstance(document, dict), "Write one JSON object.")
    ]
    if not isinstance(document, dict):
        return findings, None
    findings += _members(url, document)
    if not all(finding.holds for finding in findings):
        return findings, None
    return findings, _app(url, document)


def _members(url: str, document: dict[str, Any]) -> Iterator[Finding]:
    given = document.get("client_id")
    yield _rule("client_id is this address", str(given), given == url, f"Set client_id to {url}.")
    name = document.get("client_name")
    named = isinstance(name, str) and 0 < len(name.strip()) <= LONGEST_NAME and not _NOT_TEXT.search(name)
    yield _rule(
        "client_name is there", str(name)[:100], named, f"Give it a client_name of up to {LONGEST_NAME} characters."
    )
    method = document.get("token_endpoint_auth_method")
    yield _rule(
        "token_endpoint_auth_method is none",
        str(method),
        method == "none",
        'Set it to "none": such an app has no secret.',
    )
    secrets = [member for member in ("client_secret", "client_secret_expires_at") if member in document]
    yield _rule("It holds no secret", ", ".join(secrets), not secrets, "Remove it: everyone can read this document.")
    yield _redirect_uris(document.get("redirect_uris"))
    for member in ("logo_uri", "client_uri"):
        address = document.get(member, "")
        fine = isinstance(address, str) and (not address or urlsplit_is_web(address))
        yield _rule(
            f"{member} is a web address, if there is one",
            str(address)[:100],
            fine,
            "Write an https address, or leave it out.",
        )


def _redirect_uris(given: object) -> Finding:
    rule = "redirect_uris are addresses of the app"
    if not isinstance(given, list) or not 0 < len(given) <= MOST_REDIRECT_URIS:
        return Finding(rule, str(given)[:100], f"List 1 to {MOST_REDIRECT_URIS} redirect_uris.")
    for uri in given:
        if not isinstance(uri, str):
            return Finding(rule, str(uri)[:100], "Write each as text.")
        try:
            check_redirect_uri(uri)
        except Unprocessable as error:
            return Finding(rule, uri[:100], error.message)
    return Finding(rule, ", ".join(given)[:200])


def urlsplit_is_web(address: str) -> bool:
    try:
        return address.isascii() and urlsplit(address).scheme in ("http", "https")
    except ValueError:
        return False


def _app(url: str, document: dict[str, Any]) -> App:
    return App(
        client_id=url,
        name=document["client_name"].strip(),
        homepage=document.get("client_uri", ""),
        redirect_uris=tuple(document["redirect_uris"]),
        # It may ask for any; without asking it learns who signed in.
        scopes=tuple(scope.name for scope in BUILT_IN),
        default_scopes=DEFAULT_SCOPES,
        refresh_tokens=True,
        document_host=urlsplit(url).netloc.lower(),
    )


def _rule(rule: str, found: str, holds: bool, cure: str) -> Finding:
    return Finding(rule, found, "" if holds else cure)
