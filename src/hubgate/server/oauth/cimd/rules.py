"""The rules for a client metadata document, each with its fix. Pure.

They follow the IETF draft (OAuth Client ID Metadata Document). Unknown members and other grant types are ignored: a
document may be written for several servers.
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from hubgate.server.egress.connection import HttpResponse
from hubgate.server.errors import Unprocessable
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.keys.algorithms import supported_or_default
from hubgate.server.oauth.redirects import LOOPBACK, check_redirect_uri, host_of
from hubgate.server.scopes import BUILT_IN_SCOPES

LONGEST_NAME = 200
LONGEST_FOUND = 200
MAX_REDIRECT_URIS = 50
DEFAULT_SCOPES = ("openid", "profile")
_RESPONDS_WITH_200, _MISSING = "The response has status 200", "missing"
_KINDS = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
# The networks an operator allows so that the hub can fetch documents from localhost in development.
_LOOPBACK_NETWORKS = {"127.0.0.1": "127.0.0.0/8", "localhost": "127.0.0.0/8,::1/128", "[::1]": "::1/128"}
_DEVELOPMENT = (
    " In development, start the hub with HUBGATE_CIMD_ALLOW_HTTP_LOOPBACK=true and HUBGATE_EGRESS_ALLOW={networks}."
)
# Valid in JSON, but not in a page or the database: NUL and lone surrogates.
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


class Finding(Struct, frozen=True):
    """The result of one rule. `found` is the actual value; `fix` is empty if the rule holds."""

    rule: str
    found: str
    fix: str = ""

    @property
    def passed(self) -> bool:
        return not self.fix


def check_address(url: str, *, http_loopback: bool) -> list[Finding]:
    return list(_url_findings(url, http_loopback))


def _url_findings(url: str, http_loopback: bool) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
        host = host_of(parts)
    except ValueError:
        yield Finding(
            "The address is valid", url, "Write an address such as https://app.example/.well-known/oauth-cimd."
        )
        return
    allowed = parts.scheme == "https" or (http_loopback and parts.scheme == "http" and host in LOOPBACK)
    rule = "The address begins with https://" + (", or with http:// on this computer" if http_loopback else "")
    yield _finding(rule, parts.scheme or _MISSING, allowed, f"Serve the document over https.{development_hint(host)}")
    yield _finding(
        "The address has a plain host, without a user name", parts.netloc, host is not None, "Write host and port only."
    )
    plain = parts.netloc == parts.netloc.lower() and not parts.netloc.partition(":")[0].endswith(".")
    yield _finding(
        "The host is in lower case, without a trailing dot",
        parts.netloc,
        plain,
        "Write the host as browsers show it.",
    )
    yield _finding(
        "The address has a path", parts.path, parts.path not in ("", "/"), "Put the document at a path of its own."
    )
    dots = any(unquote(segment) in (".", "..") for segment in parts.path.split("/"))
    yield _finding("The path has no . or .. in it", parts.path, not dots, "Write the path without dot segments.")
    yield _finding(
        "The address has no fragment", parts.fragment, "#" not in url, "Remove the # and everything after it."
    )
    clean = re.fullmatch(r"[!#-;=?-\[\]_a-z~]+", url) is not None
    yield _finding("The address has only URL characters", url, clean, "Percent-encode all other characters.")


def development_hint(host: str | None) -> str:
    """A hint about development settings if the host is a loopback host; otherwise empty."""
    return _DEVELOPMENT.format(networks=_LOOPBACK_NETWORKS[host]) if host in LOOPBACK else ""


def check_response(response: HttpResponse) -> list[Finding]:
    """Check the HTTP response. With a status other than 200, nothing else is checked."""
    status = str(response.status)
    if response.status != 200:
        fix = f"Respond with status 200, not {status}" + (
            ": redirects are not followed." if 300 <= response.status < 400 else "."
        )
        return [Finding(_RESPONDS_WITH_200, status, fix)]
    kind = (response.header("content-type") or "").partition(";")[0].strip().lower()
    is_json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
    return [
        Finding(_RESPONDS_WITH_200, status),
        _finding(
            "The document is sent as JSON", kind or "no Content-Type", is_json, "Send Content-Type: application/json."
        ),
        _finding(
            "The document is small enough",
            f"{len(response.body):,} bytes",
            not response.truncated,
            "Make the document smaller.",
        ),
    ]


def check_document(url: str, body: bytes) -> tuple[list[Finding], App | None]:
    """Check the body; the app is None unless every rule holds."""
    rule, fix = "The document is one JSON object", "Write one JSON object."
    try:
        # Only UTF-8 (RFC 8259, section 8.1), no duplicate members: all parsers must read the same document.
        document = json.loads(body.decode(), object_pairs_hook=_unique_members, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return [Finding(rule, "not JSON in UTF-8, or a duplicate member", fix)], None
    if not isinstance(document, dict):
        return [Finding(rule, _KINDS.get(type(document), "a number"), fix)], None
    findings = [Finding(rule, "object"), *_member_findings(url, document)]
    if not all(finding.passed for finding in findings):
        return findings, None
    return findings, _app(url, document)


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _member_findings(url: str, document: dict[str, Any]) -> Iterator[Finding]:
    given = document.get("client_id")
    yield _finding("client_id is this address", _found(document, "client_id"), given == url, f"Set client_id to {url}.")
    name = document.get("client_name")
    named = isinstance(name, str) and 0 < len(name.strip()) <= LONGEST_NAME and not _NOT_TEXT.search(name)
    fix = f"Add a client_name of up to {LONGEST_NAME} characters."
    yield _finding("client_name is present", _found(document, "client_name"), named, fix)
    yield _auth_method_finding(document)
    secrets = [member for member in ("client_secret", "client_secret_expires_at") if member in document]
    listed = ", ".join(secrets) or "none"
    yield _finding(
        "The document contains no secret", listed, not secrets, "Remove it: everyone can read this document."
    )
    yield from _redirect_uri_findings(document)
    for member in ("logo_uri", "client_uri"):
        address = document.get(member, "")
        valid = isinstance(address, str) and (not address or _is_web_address(address))
        yield _finding(
            f"{member}, if present, is a web address",
            _found(document, member),
            valid,
            "Write an https address, or leave it out.",
        )


def _auth_method_finding(document: dict[str, Any]) -> Finding:
    """An app that also supports `none` is public here, even if it prefers a method that this hub does not offer."""
    preferred, supported = "token_endpoint_auth_method", "token_endpoint_auth_methods_supported"
    found = _found(document, preferred)
    if supported in document:
        found = f"{found}; {supported}: {_found(document, supported)}"
    listed = document.get(supported)
    public = document.get(preferred) == "none" or (isinstance(listed, list) and "none" in listed)
    fix = f'Set it to "none", or add "none" to {supported}: such an app has no secret.'
    return _finding("token_endpoint_auth_method is none", found[:LONGEST_FOUND], public, fix)


def _redirect_uri_findings(document: dict[str, Any]) -> Iterator[Finding]:
    """One finding for each invalid URI, or a single finding if all are valid."""
    rule, given = "redirect_uris are valid redirect URIs", document.get("redirect_uris")
    if not isinstance(given, list) or not 0 < len(given) <= MAX_REDIRECT_URIS:
        yield Finding(rule, _found(document, "redirect_uris"), f"List 1 to {MAX_REDIRECT_URIS} redirect_uris.")
        return
    invalid = [Finding(rule, _as_written(uri), fix) for uri in given if (fix := _redirect_uri_fix(uri))]
    yield from invalid or [Finding(rule, ", ".join(given))]


def _redirect_uri_fix(uri: object) -> str:
    if not isinstance(uri, str):
        return "Write each redirect URI as a string."
    try:
        check_redirect_uri(uri)
    except Unprocessable as error:
        return error.message
    return ""


def _post_logout_redirect_uris(given: object) -> tuple[str, ...]:
    """The valid URIs; others are ignored, because sign-in works without them."""
    listed = given if isinstance(given, list) else []
    return tuple(uri for uri in listed[:MAX_REDIRECT_URIS] if not _redirect_uri_fix(uri))


def _found(document: dict[str, Any], member: str) -> str:
    return _as_written(document[member]) if member in document else _MISSING


def _as_written(value: object) -> str:
    """The value as JSON; a string without quotes."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "nested too deeply"
    return text[:LONGEST_FOUND] or "an empty string"


def _is_web_address(address: str) -> bool:
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
        post_logout_redirect_uris=_post_logout_redirect_uris(document.get("post_logout_redirect_uris")),
        # The app may request any scope; without a scope parameter it gets DEFAULT_SCOPES.
        scopes=tuple(scope.name for scope in BUILT_IN_SCOPES),
        default_scopes=DEFAULT_SCOPES,
        refresh_tokens=True,
        id_token_signed_response_alg=supported_or_default(document.get("id_token_signed_response_alg")),
        document_host=urlsplit(url).netloc.lower(),
    )


def _finding(rule: str, found: str, passed: bool, fix: str) -> Finding:
    return Finding(rule, found, "" if passed else fix)
