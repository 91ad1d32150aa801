"""An MCP client with the Python SDK; see mcp_client.mjs."""

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT_URI = os.environ["REDIRECT_URI"]


class Storage:
    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def open_browser(address: str) -> None:
    print(f"OPEN {address}", flush=True)


async def callback() -> AuthorizationCodeResult:
    line = await asyncio.to_thread(sys.stdin.readline)
    answer = {name: values[0] for name, values in parse_qs(urlsplit(line.strip()).query).items()}
    return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])


async def visit(address: str) -> dict[str, Any]:
    storage = Storage()
    metadata = OAuthClientMetadata(client_name="Agent", redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none")
    provider = OAuthClientProvider(
        server_url=address,
        client_metadata=metadata,
        storage=storage,
        redirect_handler=open_browser,
        callback_handler=callback,
        client_metadata_url=os.environ["CLIENT_METADATA_URL"],
    )
    async with (
        create_mcp_http_client(auth=provider) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        tools = await client.list_tools()
        result = await client.call_tool("whoami", {})
        names = [tool.name for tool in tools.tools]
        return {"tools": names, "said": result.content[0].text, **storage.tokens.model_dump(exclude_none=True)}


def reason(error: BaseException) -> str:
    """The message of the first error in a group."""
    return reason(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else str(error)


async def main() -> None:
    for address in json.loads(os.environ["SERVERS"]):
        try:
            outcome = await visit(address)
        except Exception as error:
            outcome = {"error": reason(error)}
        print(f"DONE {json.dumps(outcome, default=str)}", flush=True)


asyncio.run(main())
