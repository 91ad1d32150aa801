"""`/docs/protect`: how to protect an API or MCP server, with sample code for a resource server of the reader.

Inserted values are safe between double quotes: identifiers contain neither double quotes nor backslashes
(resource_servers/fields.py), names of scopes neither. Shell commands need more quoting.
"""

import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts.model import Owner, Person
from hubgate.server.accounts.roles import Role
from hubgate.server.edge.routes import Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_servers import management
from hubgate.server.oauth.resource_servers.model import CHALLENGE_PATH, ResourceScope, ResourceServer
from hubgate.server.oauth.tokens.access_jwt import LIFETIME_SECONDS
from hubgate.server.web.pages.docs.navigation import side_of
from hubgate.server.web.pages.oauth.quickstart import Snippet, sample
from hubgate.server.web.rendering import Pages

PATH = "/docs/protect"
MAX_SERVERS = 200
EXAMPLE = ResourceServer(
    "your-resource-id", "https://mcp.example/mcp", "Example", (ResourceScope("mcp:tools", "Use your tools"),)
)
# A port that the hub itself does not use.
_PORT = 3000
_METADATA_PATH = "/.well-known/oauth-protected-resource"
_SAMPLES = (
    ("fastapi", "Python with FastAPI: an API that introspects tokens", "protect/fastapi.txt", "python"),
    ("mcp", "Python with mcp: an MCP server that introspects tokens", "protect/mcp.txt", "python"),
    ("node", "Node with the MCP SDK: an MCP server that verifies JWTs", "protect/node.txt", "javascript"),
    ("curl", "Try it with curl", "protect/curl.txt", "sh"),
)


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        person = caller_of(request).person
        servers = await _servers(oauth, person) if person else []
        requested = request.query().get("resource", "")
        default = servers[0] if servers and not requested else EXAMPLE
        chosen = next((server for server in servers if server.id == requested), default)
        return pages.page(
            request,
            "docs/protect.html",
            **side_of(PATH),
            servers=servers,
            chosen=chosen,
            is_example=chosen is EXAMPLE,
            snippets=snippets(oauth.base_url, chosen),
            challenge_path=CHALLENGE_PATH,
            minutes=LIFETIME_SECONDS // 60,
        )

    return [Route("GET", PATH, public(show), Surface.PAGE, "How to protect an API or MCP server")]


def snippets(base_url: str, server: ResourceServer) -> list[Snippet]:
    values = _values(base_url, server)
    return [Snippet(name, title, sample(file, values, language)) for name, title, file, language in _SAMPLES]


def _values(base_url: str, server: ResourceServer) -> Mapping[str, str]:
    parts = urlsplit(server.identifier)
    path = parts.path or "/"
    metadata_path = _METADATA_PATH + path.rstrip("/")
    # Others can register the address for themselves, so the audience alone says nothing about the user.
    on_this_computer = server.is_local and server.owner_id is not None
    return {
        "base_url": base_url,
        "id": server.id,
        "identifier": server.identifier,
        "identifier_argument": shlex.quote(server.identifier),
        "resource_argument": shlex.quote(f"resource={server.identifier}"),
        "scope": server.scopes[0].name if server.scopes else "openid",
        "path": path,
        "hostname": parts.hostname or "",
        "port": str(parts.port or _PORT),
        "metadata_path": metadata_path,
        "metadata_url": f"{parts.scheme}://{parts.netloc}{metadata_path}",
        "subject_text": ", `subject` other people's" if on_this_computer else "",
        "subject_rule": f', subject: "{server.owner_id}"' if on_this_computer else "",
    }


async def _servers(oauth: OAuth, person: Person) -> Sequence[ResourceServer]:
    """The resource servers that the user owns or administers."""
    found = list(await management.of_owner(oauth, Owner(user_id=person.user.id)))
    for membership in person.memberships:
        if membership.role is Role.ADMIN and len(found) < MAX_SERVERS:
            found += await management.of_owner(oauth, Owner(org_id=membership.organization.id))
    return found[:MAX_SERVERS]
