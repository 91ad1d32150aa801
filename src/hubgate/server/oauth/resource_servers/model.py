"""A registered resource server. Pure."""

import re
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.oauth.resource_names import canonical, is_local, with_registration

OPAQUE, JWT = "opaque", "jwt"
TOKEN_FORMATS = (OPAQUE, JWT)
CHALLENGE_PATH = "/.well-known/hubgate-challenge"


LONGEST_SCOPE = 60
MAX_SCOPES = 50
# Characters of RFC 6749, section 3.3, without quotes and backslashes; the first is a letter or digit.
_SCOPE_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9!#$%&()*+./:;<=>?@\[\]^_{{|}}~-]{{0,{LONGEST_SCOPE - 1}}}\Z")


def is_scope_name(name: str) -> bool:
    return _SCOPE_NAME.match(name) is not None


class ResourceScope(Struct, frozen=True):
    """A scope that a resource server defines, with the text for the consent page."""

    name: str
    text: str


class ResourceServer(Struct, frozen=True):
    """A resource server. Exactly one of `owner_id` and `org_id` is set."""

    id: str
    # As registered: the `aud` of its tokens.
    identifier: str
    name: str
    scopes: tuple[ResourceScope, ...] = ()
    tokens: str = OPAQUE
    owner_id: str | None = None
    org_id: str | None = None
    # The text that the identifier's origin has to serve; empty if the operator vouched for the owner instead.
    challenge: str = ""
    # When the owner proved control of the identifier, or the operator vouched; None until then, and for a local server.
    verified_at: int | None = None
    created_at: int = 0

    @property
    def uri(self) -> str:
        """The identifier as it is compared with `resource` parameters."""
        return canonical(self.identifier)

    @property
    def target(self) -> str:
        """The name of this server in codes, tokens and consents."""
        return with_registration(self.uri, self.id)

    @property
    def host(self) -> str:
        return urlsplit(self.uri).netloc

    @property
    def is_local(self) -> bool:
        """Whether the identifier is a loopback address: nobody can prove control of it, so it is valid only for tokens
        of its owner.
        """
        return is_local(self.uri)

    @property
    def is_active(self) -> bool:
        return self.is_local or self.verified_at is not None

    @property
    def is_vouched(self) -> bool:
        """Whether the operator vouched for the owner, who has proved nothing."""
        return self.verified_at is not None and not self.challenge

    @property
    def challenge_url(self) -> str:
        parts = urlsplit(self.uri)
        return f"{parts.scheme}://{parts.netloc}{CHALLENGE_PATH}"

    @property
    def scope_names(self) -> frozenset[str]:
        return frozenset(scope.name for scope in self.scopes)

    def serves(self, user_id: str) -> bool:
        """Whether tokens of this user are valid here."""
        return not self.is_local or user_id == self.owner_id
