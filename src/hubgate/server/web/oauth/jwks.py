"""`GET /oauth/jwks`: the public keys of the current, the next and recent signing keys."""

import msgspec

from hubgate.server.edge.routes import Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.keys.model import CACHE_SECONDS
from hubgate.server.oauth.keys.ring import KeyRing


class Jwk(msgspec.Struct):
    kty: str
    kid: str
    use: str
    alg: str
    n: str
    e: str


class JwkSet(msgspec.Struct):
    keys: list[Jwk]


def routes(ring: KeyRing) -> list[Route]:
    async def jwks(_: HubRequest) -> JsonResponse:
        keys = await ring.published_jwks()
        return JsonResponse({"keys": keys}, headers={"cache-control": f"public, max-age={CACHE_SECONDS}"})

    return [
        Route(
            "GET",
            "/oauth/jwks",
            public(jwks),
            Surface.OAUTH,
            "Public keys that verify ID tokens and signed access tokens",
            answers={200: ("A JSON Web Key Set.", JwkSet)},
        )
    ]
