"""`hubgate admin resource`: on both engines, with immediate effect on a running server."""

import httpx
from tests.bed.operator import Operator
from tests.bed.processes import HubProcess, hub_process

URL = "https://mcp.example/mcp"


def status_of(hub: HubProcess, server_id: str, secret: str) -> int:
    answer = httpx.post(f"{hub.url}/oauth/introspect", data={"token": "x"}, auth=(server_id, secret))
    return answer.status_code


def test_operator_vouches_for_resource_servers(operator: Operator) -> None:
    operator.json("admin", "user", "create", "ada", "--email", "ada@example.org", "--verified")
    operator.json("admin", "org", "create", "acme", "--owner", "ada")
    create = ("admin", "resource", "create")
    scopes = ("--scope", "mcp:tools=Use your tools", "--scope", "mcp:admin")
    with hub_process(operator.folder, "--deliver", "off", **operator.variables) as hub:
        made = operator.json(*create, URL, "--name", "Toolbox", "--org", "acme", *scopes)
        assert list(made)[:2] == ["identifier", "secret"]
        described = {
            "id": made["id"],
            "identifier": URL,
            "name": "Toolbox",
            "owner": "acme",
            "organization": "acme",
            "scopes": [{"name": "mcp:tools", "text": "Use your tools"}, {"name": "mcp:admin", "text": "Use mcp:admin"}],
            "tokens": "opaque",
            "active": True,
            "createdAt": made["createdAt"],
        }
        assert made == {**described, "secret": made["secret"]}
        assert operator.json("admin", "resource", "list") == [described]
        assert status_of(hub, made["id"], made["secret"]) == 200
        fresh = operator.json("admin", "resource", "refresh-secret", "https://MCP.example:443/mcp")
        assert fresh == {**described, "secret": fresh["secret"]}
        assert list(fresh)[:2] == ["identifier", "secret"]
        assert [status_of(hub, made["id"], each["secret"]) for each in (made, fresh)] == [401, 200]
        printed = operator.run("admin", "resource", "refresh-secret", made["id"]).stdout
        assert "Toolbox has a new secret. The old one no longer works." in printed
        assert status_of(hub, made["id"], printed.split()[-1]) == 200
        again = operator.error_message(*create, URL, "--name", "Mine", "--owner", "ada")
        assert again == (
            "This identifier belongs to another owner. Choose another address, or delete the other registration first."
        )
        local = ("http://127.0.0.1:9000/mcp", "--name", "Local")
        assert "your own settings" in operator.error_message(*create, *local, "--org", "acme")
        own = operator.json(*create, *local, "--owner", "ada", "--tokens", "jwt")
        plain = operator.json(*create, "http://mcp.internal/mcp", "--name", "Inside", "--owner", "ada")
        assert (own["tokens"], own["active"], plain["active"]) == ("jwt", True, True)
        deleted = operator.json("admin", "resource", "delete", "https://MCP.example:443/mcp")
        assert deleted == {"deleted": made["id"], "identifier": URL, "name": "Toolbox"}
        assert operator.json("admin", "resource", "delete", plain["id"])["name"] == "Inside"
        assert status_of(hub, made["id"], printed.split()[-1]) == 401
        missing = operator.error_message("admin", "resource", "delete", URL)
        assert missing == f"Resource server {URL} not found. List all with: hubgate admin resource list"
        shown = operator.run("admin", "resource", "list").stdout
        assert ("ID" in shown, "http://127.0.0.1:9000/mcp" in shown) == (True, True)
        assert hub.stop() == 0
