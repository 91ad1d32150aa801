"""An MCP server whose users sign in with the hub. It is registered there as a resource server."""

import os
from urllib.parse import urlsplit

import httpx
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer

HUB, IDENTIFIER, SCOPE = os.environ["HUB"], os.environ["IDENTIFIER"], os.environ.get("SCOPE", "mcp:tools")
hub = httpx.AsyncClient(base_url=HUB, auth=(os.environ["RESOURCE_ID"], os.environ["RESOURCE_SECRET"]))


class HubTokens:
    """Asks the hub about each token, so that a revoked one stops working at once."""

    async def verify_token(self, token: str) -> AccessToken | None:
        answer = await hub.post("/oauth/introspect", data={"token": token})
        claims = answer.raise_for_status().json()
        # False for tokens that are for another server, too.
        if not claims["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
            claims=claims,
        )


auth = AuthSettings(
    issuer_url=HUB, resource_server_url=IDENTIFIER, required_scopes=[SCOPE], validate_token_resource=True
)
mcp = MCPServer("Notes", token_verifier=HubTokens(), auth=auth)
notes: dict[str, list[str]] = {}


def user() -> str:
    """The id of the caller, which never changes, unlike the name."""
    return get_access_token().claims["sub"]


@mcp.tool()
def add_note(text: str) -> int:
    """Add a note of the user; returns the number of notes."""
    notes.setdefault(user(), []).append(text)
    return len(notes[user()])


@mcp.tool()
def list_notes() -> list[str]:
    """The user's notes."""
    return notes.get(user(), [])


address = urlsplit(IDENTIFIER)
app = mcp.streamable_http_app(streamable_http_path=address.path, host=address.hostname)
