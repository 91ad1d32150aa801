"""Scopes that the operator granted to an app with a metadata document."""

from msgspec import Struct


class GrantedScopes(Struct, frozen=True):
    """The operator-defined scopes of an app; `created_at` is when it got the first of them."""

    client_id: str
    scopes: tuple[str, ...]
    created_at: int
