"""The identity that a service behind the gateway receives instead of the caller's token: the claims of a JWT."""

from typing import Any

from hubgate.server.accounts.model import Organization, User
from hubgate.server.clock import SECOND
from hubgate.server.gateway.upstream import Upstream

# The service checks the identity when it receives the head of the request, so a minute is enough.
LIFETIME_SECONDS = 60


def identity_claims(
    issuer: str, upstream: Upstream, user: User, namespace: User | Organization, scope: str, now: int
) -> dict[str, Any]:
    """The claims for one request. `namespace` is the account that pays; `scope` is the scope that was checked, never
    the other scopes of the caller's token. Names can change, so the namespace's id is included.
    """
    return {
        "iss": issuer,
        "aud": upstream.address,
        "sub": user.id,
        "preferred_username": user.name,
        "namespace": namespace.name,
        "namespace_id": namespace.id,
        "namespace_type": "org" if isinstance(namespace, Organization) else "user",
        "scope": scope,
        "iat": now // SECOND,
        "exp": now // SECOND + LIFETIME_SECONDS,
    }
