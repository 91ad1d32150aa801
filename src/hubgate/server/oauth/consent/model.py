"""A request for access, the consent to it, and the details that a consent page showed. Pure."""

import hashlib
import json
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.redirects import is_loopback, is_web, shown_host
from hubgate.server.oauth.resource_names import uri_of
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.scopes import IDENTITY_SCOPES

# Length of each half of `App.face`: the name, then the redirect targets.
_DIGEST_LENGTH = 16


class AccessRequest(Struct, frozen=True):
    """An app's request for access, from the browser or from a device."""

    app: App
    scopes: tuple[str, ...]
    # Ids of organizations the app requests.
    organizations: tuple[str, ...] = ()
    # Empty for the device flow.
    redirect_uri: str = ""
    # The servers a token is requested for (RFC 8707), named as in tokens; empty for this hub.
    resources: tuple[str, ...] = ()
    # Those among them that are registered.
    servers: tuple[ResourceServer, ...] = ()

    def scopes_on(self, resource: str) -> frozenset[str]:
        """The requested scopes that apply to one of the servers: those that identify the user, and its own."""
        server = next((server for server in self.servers if server.target == resource), None)
        return frozenset(self.scopes) & (IDENTITY_SCOPES | (server.scope_names if server else frozenset()))


ResourceScopes = Mapping[str, frozenset[str]]


def scopes_on_all(granted: ResourceScopes, resources: Collection[str]) -> frozenset[str]:
    """The scopes that are granted on every one of these servers."""
    return frozenset.intersection(*(granted.get(name, frozenset()) for name in resources))


class Consent(Struct, frozen=True):
    id: str
    user_id: str
    client_id: str
    scopes: frozenset[str]
    # Scopes approved for tokens for other servers (RFC 8707), by server.
    resource_scopes: ResourceScopes
    # Granted scopes by organization id.
    organizations: Mapping[str, frozenset[str]]
    face: str
    app_name: str
    created_at: int
    updated_at: int
    last_used_at: int | None

    @property
    def other_resources(self) -> tuple[str, ...]:
        """The URIs of the other servers that scopes were approved for."""
        return tuple(sorted({uri_of(name) for name in self.resource_scopes}))

    @property
    def other_scopes(self) -> frozenset[str]:
        """The scopes that were approved for any of the other servers."""
        return frozenset().union(*self.resource_scopes.values())

    def scopes_on(self, uri: str) -> frozenset[str]:
        """The scopes that were approved for a server, under any registration."""
        return frozenset().union(*(scopes for name, scopes in self.resource_scopes.items() if uri_of(name) == uri))

    def allowed(self, resources: Collection[str]) -> frozenset[str]:
        """The approved scopes of a token for these servers; empty for this hub."""
        return scopes_on_all(self.resource_scopes, resources) if resources else self.scopes

    def allowed_on_any(self, resources: Collection[str]) -> frozenset[str]:
        """The approved scopes of a refresh token for these servers: those of each of its access tokens."""
        return frozenset().union(*(self.allowed([name]) for name in resources)) if resources else self.scopes

    def covers(self, access: AccessRequest, organizations: Collection[str]) -> bool:
        """Whether all of this was approved before, and the app looks the same."""
        if self.face != access.app.face:
            return False
        if access.resources:
            granted = self.resource_scopes
            return all(granted.get(name, frozenset()) >= access.scopes_on(name) for name in access.resources)
        in_organizations = set(access.scopes) - IDENTITY_SCOPES
        return self.scopes >= set(access.scopes) and all(
            org in self.organizations and self.organizations[org] >= in_organizations for org in organizations
        )

    def was_renamed(self, face: str) -> bool:
        return self.face[:_DIGEST_LENGTH] != face[:_DIGEST_LENGTH]

    def has_new_targets(self, face: str) -> bool:
        """Whether the app's redirect targets have changed."""
        return self.face[_DIGEST_LENGTH:] != face[_DIGEST_LENGTH:]


class AppConnection(Struct, frozen=True):
    """A consent as its user sees it, with the app's registration. An unregistered app has an empty registration."""

    consent: Consent
    redirect_uris: tuple[str, ...] = ()
    app_scopes: frozenset[str] = frozenset()
    required_scopes: frozenset[str] = frozenset()

    @property
    def client_id(self) -> str:
        return self.consent.client_id

    @property
    def has_document(self) -> bool:
        return self.client_id.startswith(("https://", "http://"))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of the metadata document, or the redirect hosts; empty for an app that only uses device codes."""
        if self.has_document:
            return (urlsplit(self.client_id).netloc.lower(),)
        return tuple(dict.fromkeys(map(shown_host, self.redirect_uris)))

    @property
    def allowable_scopes(self) -> frozenset[str]:
        """The scopes a user can allow: those consented to, and those in the app's registration."""
        return self.consent.scopes | self.app_scopes


class ConsentDetails(Struct, frozen=True):
    """The parts of a consent page that a later request must match to skip the page."""

    # The URIs of the servers, sorted and separated by spaces; empty for this hub.
    resources: str = ""
    # Empty if a later request may use any registered redirect URI.
    redirect_uri: str = ""

    @property
    def key(self) -> str:
        """A hash short enough for an index; empty in the common case of a web app and tokens for this hub."""
        content = json.dumps([self.resources, self.redirect_uri]).encode()
        return hashlib.sha256(content).hexdigest() if self.resources or self.redirect_uri else ""


def consent_details(access: AccessRequest) -> ConsentDetails | None:
    """The details that a later request must match to skip the page; None if the user must be asked every time.

    The user must be asked if any program on the device could receive the code (attack O75).
    """
    app, target = access.app, access.redirect_uri
    resources = " ".join(sorted(access.resources))
    if target and not is_web(target):
        # Any app on the device can claim the scheme (RFC 8252, section 8.6).
        return None
    if is_loopback(target) and app.document_host:
        # Any program can send this document's client_id, too.
        return None
    if is_loopback(target) and not app.confidential:
        # Any local program can listen on another port and redeem the code without a secret.
        return ConsentDetails(resources, target)
    return ConsentDetails(resources)
