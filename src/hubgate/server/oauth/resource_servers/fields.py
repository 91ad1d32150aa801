"""Validation of a resource server's fields; errors use the field names of the API. Pure."""

from collections.abc import Collection

from msgspec.structs import replace

from hubgate.server.accounts.field_checks import FieldChecks, check_shown_name, is_visible_text
from hubgate.server.errors import Unprocessable
from hubgate.server.oauth.redirects import host_of, split_address
from hubgate.server.oauth.resource_names import canonical, has_invalid_escape
from hubgate.server.oauth.resource_servers.model import (
    LONGEST_SCOPE,
    MAX_SCOPES,
    TOKEN_FORMATS,
    ResourceScope,
    ResourceServer,
    is_scope_name,
)
from hubgate.server.scopes import IGNORED_SCOPES, SCOPE_NAMES

LONGEST_IDENTIFIER = 500
LONGEST_NAME = 96
LONGEST_TEXT = 200


def validate_server(
    server: ResourceServer, base_url: str, reserved: Collection[str], address_error: str = ""
) -> ResourceServer:
    """Validate and normalize; FieldErrors names every invalid field. `reserved` are the operator's scopes, and
    `address_error` says why this owner cannot register the identifier.
    """
    checks = FieldChecks()
    name = checks.check("name", _name, server.name)
    identifier = checks.check("identifier", check_identifier, server.identifier.strip())
    if checks.is_valid("identifier") and _origin(identifier) == _origin(base_url):
        checks.add_error("identifier", "This address is on this hub, which protects its own API.")
    if address_error:
        checks.add_error("identifier", address_error)
    scopes = _scopes(checks, server.scopes, {*SCOPE_NAMES, *IGNORED_SCOPES, *reserved})
    if server.tokens not in TOKEN_FORMATS:
        checks.add_error("tokens", f"tokens must be {' or '.join(TOKEN_FORMATS)}.")
    checks.raise_errors()
    return replace(server, name=name, identifier=identifier, scopes=scopes)


def check_identifier(given: str) -> str:
    """Validate an identifier: the address of an API as its clients write it."""
    parts = split_address(given)
    if parts is None or parts.scheme not in ("http", "https") or host_of(parts) is None:
        raise Unprocessable("An identifier must be an address such as https://mcp.example/mcp.")
    if has_invalid_escape(given):
        raise Unprocessable("In an identifier, % must be followed by two hexadecimal digits. Write %25 for a % sign.")
    if "#" in given:
        raise Unprocessable("An identifier cannot have a fragment. Remove the # and everything after it.")
    if len(given) > LONGEST_IDENTIFIER:
        raise Unprocessable(f"An identifier may have at most {LONGEST_IDENTIFIER} characters.")
    return given


def _origin(uri: str) -> str:
    return "/".join(canonical(uri).split("/", 3)[:3])


def _scopes(
    checks: FieldChecks, given: tuple[ResourceScope, ...], reserved: Collection[str]
) -> tuple[ResourceScope, ...]:
    if len(given) > MAX_SCOPES:
        checks.add_error("scopes", f"At most {MAX_SCOPES} scopes.")
        return given
    names = [scope.name for scope in given]
    for name in names:
        if not is_scope_name(name):
            checks.add_error(
                "scopes", f"{name[:LONGEST_SCOPE] or 'An empty name'} is not a scope's name such as mcp:tools."
            )
        elif name in reserved:
            checks.add_error("scopes", f"{name} is a scope of this hub. Choose another name.")
        elif names.count(name) > 1:
            checks.add_error("scopes", f"{name} is listed twice.")
    scopes = tuple(ResourceScope(scope.name, " ".join(scope.text.split())) for scope in given)
    for name, text in ((scope.name, scope.text) for scope in scopes):
        if checks.is_valid("scopes") and not (1 <= len(text) <= LONGEST_TEXT and is_visible_text(text)):
            checks.add_error(
                "scopes",
                f"{name} needs a text of 1 to {LONGEST_TEXT} printable characters, some of them visible, for the "
                "consent page.",
            )
    return scopes


def _name(given: str) -> str:
    return check_shown_name("A name", given, LONGEST_NAME)
